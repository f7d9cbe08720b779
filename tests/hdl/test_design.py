"""cycles.csv has the cycles of the compiled hardware description."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.hdl.banks import BankedMemory
from tests.hdl.design import IdealMemory, Sizes, swiglu

with (Path(__file__).parent / "cycles.csv").open(encoding="utf-8") as file:
    COUNTED = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize("ideal", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    "row", [COUNTED[-1], *(pytest.param(row, marks=pytest.mark.deep) for row in COUNTED[:-1])]
)
def test_model_has_the_cycles_of_the_hardware_description(
    row: dict[str, int], *, ideal: bool
) -> None:
    *sizes, cycles, ideal_cycles = row.values()
    design = swiglu(Sizes(*sizes), IdealMemory() if ideal else BankedMemory())
    assert design.run() == (ideal_cycles if ideal else cycles)

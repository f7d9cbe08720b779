from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, StreamType
from fabric.analysis.symbolic.metrics import metrics_of
from fabric.analysis.symbolic.substitution import Substitution, chosen_sizes
from fabric.extend import Costs
from fabric.graph.wiring.elaborate import elaborate
from operators import Flatten, LinearOffChipLoad, Partition, Selectors
from tests.fabric.scripted import Charge


@dataclass(frozen=True)
class HalfBytes(Charge):
    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(store_bytes=inputs[0].count * Fraction(1, 2))


@pytest.mark.parametrize(("elements", "stored_bytes"), [(0, 0), (1, 1), (2, 1)])
def test_stored_half_bytes_are_rounded_up(elements: int, stored_bytes: int) -> None:
    with Program("halves") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.zeros((3, 32), np.float32), (1, 32))())
        route = Selectors(np.array([[0], [1], [0]]), 2, name="route")()
        for stream in Partition(2)(rows, route):
            HalfBytes()(stream)
    plan = elaborate(program)
    sizes = chosen_sizes(plan, {"D_route[0]": elements, "D_route[1]": 0}, data=False)

    assert metrics_of(plan, Substitution(sizes)).paper.store_bytes == stored_bytes

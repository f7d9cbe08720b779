from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

# Any: fields of a channel or a unit.
from typing import Any, TypeAlias

import numpy as np
import pytest

from fabric import Hop
from operators.rtl.blocks import Unit
from operators.rtl.hardware import Comparison, Design, compared, design, logged, run, write
from operators.rtl.netlist import Instance
from tests.programs.loading import program
from tests.rtl.driving import beside

# A channel that passes on a selector as soon as it has a credit.
SHORT = "flatten_2.0"


@pytest.fixture(scope="module")
def right() -> Design:
    built = program("simplified_moe", "wires.toml", tokens=6)
    return design(built, depths={SHORT: 1}, hops={SHORT: Hop(1, 3)})


def freeing_store() -> Unit:
    u = Unit(1, 0, off_chip=True)
    head = u.inputs[0]
    u.m.d.comb += [u.request.eq(head.valid), head.take.eq(head.valid)]
    u.m.d.comb += u.done.eq(~head.valid & head.end)
    return u


def apart(parts: list[Design], log: Path) -> Iterator[Comparison]:
    rows = logged(log)
    channel = unit = 0
    for each in parts:
        next_channel = channel + len(each.netlist.channels)
        next_unit = unit + len(each.netlist.units)
        is_fault = rows[:, 0] == 2
        first = np.where(is_fault, unit, channel)
        last = np.where(is_fault, next_unit, next_channel)
        its = rows[(first <= rows[:, 1]) & (rows[:, 1] < last)].copy()
        its[:, 1] -= np.where(its[:, 0] == 2, unit, channel)
        yield compared(each.expected, its, each.netlist, each.cycles)
        channel, unit = next_channel, next_unit


# A change of the hardware, and the unit that it is found at.
Fault: TypeAlias = tuple[Callable[[Design], Design], str]


def changed_channel(**fields: Any) -> Fault:
    def change(right: Design) -> Design:
        channels = [
            each._replace(**fields) if each.name.endswith(f" -> {SHORT}") else each
            for each in right.netlist.channels
        ]
        return replace(right, netlist=replace(right.netlist, channels=channels))

    return change, "selectors_1"


def changed_unit(name: str, fields: Callable[[Instance], dict[str, Any]]) -> Fault:
    def change(right: Design) -> Design:
        units = [
            replace(each, **fields(each)) if each.name == name else each
            for each in right.netlist.units
        ]
        return replace(right, netlist=replace(right.netlist, units=units))

    return change, name


FAULTS = {
    "a credit a cycle early": changed_channel(backward_cycles=2),
    "a depth off by one": changed_channel(depth=2),
    "a swapped merge": changed_unit(
        "reassemble_1", lambda each: {"inputs": [*each.inputs[1::-1], *each.inputs[2:]]}
    ),
    "a lost stop": changed_unit("flatten_1", lambda _: {"parameters": {"inner": 0, "outer": 2}}),
    "a peek that frees": changed_unit(
        "linear_off_chip_store_1", lambda _: {"module": "StoreFreeing", "build": freeing_store}
    ),
}


@pytest.mark.deep
def test_planted_faults_are_found_at_their_unit(right: Design, tmp_path: Path) -> None:
    parts = [right, *(plant(right) for plant, _ in FAULTS.values())]
    together = beside(parts)
    assert not run(together, write(together, tmp_path), tmp_path).equal
    found = [each.first_difference for each in apart(parts, tmp_path / "transfers.log")]

    assert found[0] is None
    for (name, (_, unit)), difference in zip(FAULTS.items(), found[1:], strict=True):
        assert difference is not None, name
        assert difference.unit == unit, (name, str(difference))

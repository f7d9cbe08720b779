"""Cycles of operators, computed by hand from their rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fabric as fab
import operators as op
from fabric.extend import Element, Operator
from tests.operators.driving import NUMBER, Collect, Emit, encode

LARGE = fab.TileType(16, 16, np.dtype(np.float32))


def _run(wire: Any, depth: int = 1000) -> fab.Report:
    with fab.Program("timing", channel_depth=depth, flops_per_cycle=64) as program:
        wire()
    report = fab.simulate(program)
    assert report.status == "completed"
    return report


def _busy(report: fab.Report, name: str) -> int:
    (cycles,) = (unit.busy_cycles for unit in report.units if unit.name == name)
    return cycles


def _emit(values: Any, *shape: int, value: Any = NUMBER, gaps: Sequence[int] = (0,)) -> fab.Stream:
    return Emit(fab.StreamType(shape, value), encode(values, len(shape)), gaps)()


@pytest.mark.parametrize("operator", [op.Zip(), op.Promote(0), op.Reshape(1)])
def test_shape_operators_take_no_cycles(operator: Operator) -> None:
    def wire() -> None:
        source = _emit(list(range(5)), 5)
        result: Any = operator
        outputs = result(source, source) if isinstance(operator, op.Zip) else result(source)
        Collect([], (0,))(outputs if isinstance(outputs, fab.Stream) else outputs[0])

    report = _run(wire)
    assert sum(unit.busy_cycles for unit in report.units) == 0
    assert (3 if isinstance(operator, op.Zip) else 2) == report.cycles


@pytest.mark.parametrize(("operator", "busy"), [(op.Accum, 4 + 16), (op.Scan, 16 + 16)])
def test_a_scan_stores_every_element_and_an_accum_the_last(operator: Any, busy: int) -> None:
    block = fab.Tile(16, 16, LARGE.dtype)

    def wire() -> None:
        source = _emit([[block] * 2], 1, 2, value=LARGE)
        op.Consumer()(operator(op.Sum(), to_memory=True)(source))

    assert busy == _busy(_run(wire), "sum_1")


@pytest.mark.parametrize(
    "routed",
    [
        lambda tiles, chosen: op.Partition(1)(tiles, chosen)[0],
        lambda tiles, chosen: op.Reassemble()([tiles], chosen),
    ],
    ids=["Partition", "Reassemble"],
)
def test_tile_loaded_to_be_routed_is_loaded_once(routed: Callable[..., fab.Stream]) -> None:
    block = fab.Tile(16, 16, LARGE.dtype, in_memory=True)

    def wire() -> None:
        chosen = _emit([fab.Selector((0,), 1)] * 2, 2, value=fab.SelectorType(1))
        tiles = routed(_emit([block] * 2, 2, value=LARGE), chosen)
        op.Consumer()(op.Map(op.Mul())(tiles, tiles))

    assert _busy(_run(wire), "mul_1") == 2 * 4


def _seen(wire: Any) -> list[int]:
    cycles: list[int] = []

    class Clocked(Collect):
        async def run(self, ports: Any) -> None:
            while await ports.source.receive() is not None:
                cycles.append(ports.unit.now)

    seen: list[Element] = []
    _run(lambda: Clocked(seen)(wire()))
    return cycles


def test_promote_of_the_outermost_dimension_looks_one_element_ahead() -> None:
    assert [12, 22, 22] == _seen(lambda: op.Promote()(_emit([1, 2, 3], 3, gaps=(0, 10, 10))))


def test_promote_of_an_inner_dimension_does_not_wait() -> None:
    assert [2, 12, 22] == _seen(lambda: op.Promote(0)(_emit([1, 2, 3], 3, gaps=(0, 10, 10))))

"""Assumptions about shapes: wiring, running, and warnings."""

from __future__ import annotations

import numpy as np
import pytest

import fabric as fab
import operators as op
from fabric.analysis.symbolic.check import check
from fabric.graph.values.dims import symbol
from tests.compiled.both import Engine
from tests.definitions import at_depth
from tests.operators.driving import Emit, encode
from tests.symbolic.small_operators import HitList


def routed(choice: list[list[int]]) -> tuple[fab.Stream, ...]:
    array = np.array(choice)
    x = np.arange(32.0 * len(choice), dtype=np.float32).reshape(len(choice), 32)
    rows = op.Flatten(0, 1)(op.LinearOffChipLoad(x, (1, 32))())
    return op.Partition(2)(rows, op.Selectors(array, 2, name="route")())


def test_needless_assumption_is_reported() -> None:
    with fab.Program("p") as program:
        left, right = routed([[0], [1]])
        right.assume(1)
        op.LinearOffChipStore("y")(left.assume(*left.shape))
        op.LinearOffChipStore("z")(right)

    first, second = check(program, {}, data=False).warnings
    assert second.endswith(
        "partition_1.0: the assumed shape [D_route[0]] is what its operators say: expected no "
        "assume(...)"
    )
    assert first.endswith(
        "partition_1.1: the assumed shape [1] is used by no operator: expected no assume(...)"
    )


def test_true_assumption_changes_no_cycle() -> None:
    reports = []
    for size in (None, 2):
        with fab.Program("p") as program:
            left, right = routed([[0], [1], [0]])
            op.LinearOffChipStore("y")(left if size is None else left.assume(size))
            op.LinearOffChipStore("z")(right)
        reports.append(fab.simulate(program))

    assert ["completed"] * 2 == [report.status for report in reports]
    assert reports[0].cycles == reports[1].cycles


def test_false_assumed_symbol_is_an_error() -> None:
    with fab.Program("p") as program:
        left, right = routed([[0], [1], [0]])
        op.LinearOffChipStore("y")(left.assume(*right.shape))
        op.LinearOffChipStore("z")(right)
    report = fab.simulate(program)

    assert report.error is not None
    assert (
        "partition_1.0: dimension 0 (D_route[0]) is 2: expected D_route[1], here 1, as the "
        "program assumes"
    ) == report.error["message"]


@pytest.mark.parametrize(("hits", "message"), [([[0], [1]], None), ([[0, 1], []], "")])
def test_assumed_size_holds_for_each_group(hits: list[list[int]], message: str | None) -> None:
    with fab.Program("p") as program:
        chosen = HitList(tuple(map(tuple, hits)))()
        rows = op.Flatten(0, 1)(op.LinearOffChipLoad(np.zeros((2, 32), np.float32), (1, 32))())
        streams = op.Partition(2)(rows, chosen)
        y = op.Reassemble()(streams, chosen).assume(1, 2, 1)
        op.LinearOffChipStore("y")(y)
    report = fab.simulate(program)

    if message is None:
        assert ("completed", None) == (report.status, report.error)
    else:
        assert report.error is not None
        assert (
            "reassemble_1.0: dimension 0 (D_reassemble_1~) is 2 in group 1: expected 1, as the "
            "program assumes"
        ) == report.error["message"]


@pytest.mark.parametrize("engine", ["tasks", "compiled"])
@pytest.mark.parametrize(
    ("size", "message"), [(1, None), (2, "is 1 in group 1: expected 2, as the program assumes")]
)
def test_assumed_size_gives_the_other_size_of_a_shape(
    size: int, message: str | None, engine: Engine
) -> None:
    one = fab.Tile(1, 1, np.dtype(np.float32))
    elements = encode(at_depth(lambda _: one, 3, [[[0], [0]], [[0], [0], [0]]]), 3)
    outer, inner = symbol("R", ragged=True), symbol("S", ragged=True)
    with fab.Program("p", mode="timing") as program:
        kind = fab.StreamType((2, outer, inner), fab.TileType(1, 1, one.dtype))
        rows = op.Repeat(2)(Emit(kind, elements)())
        op.Consumer()(rows.assume(2, rows.shape[1], size, 2))
    report = fab.simulate(program, engine=engine)

    if message is None:
        assert ("completed", None, ()) == (report.status, report.error, report.warnings)
        assert report.elements == 5 + 2 * 5
    else:
        assert report.error is not None
        assert report.error["message"] == f"repeat_1.0: dimension 1 (S~) {message}"

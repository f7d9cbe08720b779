"""Lower bounds that can be worked out on paper, and which sizes they believe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from typing_extensions import override

import fabric as fab
import operators as op
from fabric.extend import (
    Costs,
    Ports,
)
from tests.bases import Hop as Passing
from tests.operators.driving import Emit, encode, tile
from tests.symbolic.bounded import compared, load


@dataclass(frozen=True)
class Keeping(Passing):
    @override
    def costs(
        self, inputs: tuple[fab.StreamType, ...], outputs: tuple[fab.StreamType, ...]
    ) -> Costs:
        return Costs(on_chip_bytes=inputs[0].shape[-1])

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


def test_size_known_only_in_a_product_is_not_exact() -> None:
    one = fab.TileType(1, 1, np.dtype(np.float32))
    elements = encode([[tile(0)] * 4] * 3, 2)
    found = []
    for shows in (False, True):
        with fab.Program("p") as built:
            sizes = built.symbol("A"), built.symbol("B")
            rows = Keeping()(Emit(fab.StreamType(sizes, one), elements)())
            op.Consumer()(op.Bufferize()(rows) if shows else rows)
            for size, number in zip(sizes, (3, 4), strict=True):
                built.bind(size, number)
        known, _ = compared(built)
        found.append("on_chip_requirement_bytes" in known.exact)

    assert [False, True] == found


def test_feedback_counts_as_often_as_promised() -> None:
    def built(promised: int) -> fab.Program:
        with fab.Program("p") as program:
            loop = fab.Feedback(
                fab.StreamType((promised,), fab.TileType(1, 32, np.dtype(np.float32)))
            )
            merged, _ = op.EagerMerge()([op.Flatten(0, 2)(load(3)), loop])
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 64)), (4, 16))(merged))
            route = op.Flatten(0, 1)(op.Selectors(np.zeros((2, 1), np.int64), 1)())
            (back,) = op.Partition(1)(op.Flatten(0, 2)(load(2)), route)
            program.bind(back.shape[0], 2)
            loop.connect(back)
        return program

    known, report = compared(built(2))

    assert "completed" == report.status
    assert 5 * 2 * 64 == known.at_least["hbm_bytes_moved"]
    with pytest.raises(fab.ProgramError, match="is bound to 2: expected 1000, as the program"):
        fab.lower_bounds(built(1000))


def test_open_feedback_is_trusted_without_other_symbols() -> None:
    row = fab.TileType(1, 32, np.dtype(np.float32))
    found = []
    for kind in ("open", "a number", "of another stream", "of another feedback"):
        with fab.Program("p") as built:
            parts = op.Partition(2)(
                op.Flatten(0, 1)(load(4)), op.Selectors(np.array([[0], [1], [0], [1]]), 2)()
            )
            sizes: list[fab.Dim] = [built.symbol("D"), built.symbol("E")]
            if kind == "of another stream":
                sizes[0] = parts[0].shape[0]
            if kind == "of another feedback":
                sizes[1] = sizes[0]
            shapes: list[tuple[fab.Dim, ...]]
            shapes = [(2,), (sizes[1],)] if kind == "a number" else [(size,) for size in sizes]
            loops = [fab.Feedback(fab.StreamType(shape, row)) for shape in shapes]
            order = op.Flatten(0, 1)(op.Selectors(np.array([[0], [1], [0], [1]]), 2)())
            joined = op.Reassemble()(loops, order)
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 64)), (4, 16))(joined))
            for loop, part in zip(loops, parts, strict=True):
                loop.connect(part)
        known, report = compared(built)
        assert "completed" == report.status
        found.append("hbm_bytes_moved" in known.exact)

    assert [True, False, False, False] == found


def test_assumed_size_makes_bytes_exact() -> None:
    found = []
    for assumes in (True, False):
        with fab.Program("p") as built:
            parts = op.Partition(2)(
                op.Flatten(0, 1)(load(3)), op.Selectors(np.array([[0], [1], [0]]), 2)()
            )
            for size, part in zip((2, 1), parts, strict=True):
                counted = part.assume(size) if assumes else part
                op.LinearOffChipStore(f"y{size}")(counted)
                op.Consumer()(part)
        known, report = compared(built)
        assert "completed" == report.status
        found.append("hbm_bytes_moved" in known.exact)

    assert [True, False] == found

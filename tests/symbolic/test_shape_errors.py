"""Programs that cannot be wired: each with its whole message, and the line it is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Feedback, Program, ProgramError, Stream, StreamType, simulate
from operators import (
    INTEGER,
    Accum,
    Add,
    Bufferize,
    CacheReadAddresses,
    EagerMerge,
    Expand,
    ExpertAddresses,
    FilterLastTile,
    FlatMap,
    Flatten,
    Intersect,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    MatmulSum,
    Metadata,
    Mul,
    Parallelize,
    Partition,
    Promote,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    Repeat,
    Reshape,
    RetileRow,
    RowAppend,
    Scan,
    Scatter,
    Selectors,
    SetOffset,
    SiLU,
    SplitCols,
    SplitRows,
    SplitTiles,
    Streamify,
    Sum,
    Union,
    Zip,
)


def tiles(rows: int = 4, cols: int = 64, tile: tuple[int, int] = (1, 32)) -> Stream:
    """[1, rows / tile rows, cols / tile cols] of tiles."""
    return LinearOffChipLoad(np.zeros((rows, cols), np.float32), tile, name="x")()


def more(rows: int = 4, cols: int = 64, tile: tuple[int, int] = (1, 32)) -> Stream:
    """Another stream like that."""
    return LinearOffChipLoad(np.zeros((rows, cols), np.float32), tile, name="w")()


def route(width: int = 2, rows: int = 4, hits: int = 1) -> Stream:
    """[1, rows] of selectors."""
    return Selectors(np.zeros((rows, hits), np.int64), width, name="route")()


def other_route(width: int = 2) -> Stream:
    """[1, 1] of selectors."""
    return Selectors(np.zeros((1, 1), np.int64), width, name="order")()


def numbers(count: int = 4) -> Stream:
    """[1, count] of integers."""
    return Metadata(np.zeros(count, np.int64), name="n")()


def others(count: int = 4) -> Stream:
    """Another stream like that."""
    return Metadata(np.zeros(count, np.int64), name="m")()


def parts() -> tuple[Stream, ...]:
    """Two streams [D_route[i]] of 1x32."""
    return Partition(2)(Flatten(0, 1)(tiles(4, 32)), route())


TENSOR = np.zeros((4, 64), np.float32)
Wrong = Callable[[], Any]
CASES: dict[str, Wrong] = {
    "load-tile": lambda: tiles(4, 64, (3, 32)),
    "load-vector": LinearOffChipLoad(np.zeros(4, np.float32), (1, 1)),
    "load-strides": LinearOffChipLoad(TENSOR, (1, 32), shape=(2, 2), strides=(1,)),
    "load-other": lambda: tiles(4, 64, (4, 48)),
    "store-selectors": lambda: LinearOffChipStore("y")(route()),
    "store-integers": lambda: LinearOffChipStore("y")(Zip()(tiles(), more())),
    "random-load-tile": lambda: RandomOffChipLoad(TENSOR, (3, 64))(numbers()),
    "random-load-addresses": lambda: RandomOffChipLoad(TENSOR, (1, 64))(tiles()),
    "random-load-selectors": lambda: RandomOffChipLoad(TENSOR, (1, 64))(route()),
    "random-store-addresses": lambda: RandomOffChipStore("y", TENSOR, (1, 32))(tiles(), more()),
    "random-store-data": lambda: RandomOffChipStore("y", TENSOR, (1, 32))(numbers(), route()),
    "random-store-shape": lambda: RandomOffChipStore("y", TENSOR, (1, 32))(
        numbers(3), Flatten(0, 1)(tiles(4, 32))
    ),
    "random-store-tile": lambda: RandomOffChipStore("y", TENSOR, (1, 64))(
        numbers(4), Flatten(0, 1)(tiles(4, 32))
    ),
    "selectors-float": Selectors(np.zeros((4, 1)), 2),
    "selectors-vector": Selectors(np.zeros(4, np.int64), 2),
    "selectors-large": Selectors(np.full((4, 1), 7), 2),
    "selectors-negative": Selectors(np.full((4, 1), -1), 2),
    "metadata-float": Metadata(np.zeros(4)),
    "metadata-scalar": Metadata(np.array(4)),
    "metadata-negative": Metadata(np.array([3, -1])),
    "flatten-order": lambda: Flatten(1, 1)(tiles()),
    "flatten-rank": lambda: Flatten(0, 3)(tiles()),
    "flatten-negative": lambda: Flatten(-1, 1)(tiles()),
    "reshape-dimension": lambda: Reshape(2, dimension=3)(tiles()),
    "reshape-chunk": lambda: Reshape(0)(tiles()),
    "reshape-outer": lambda: Reshape(3, dimension=1)(tiles()),
    "reshape-padding": lambda: Reshape(3)(Flatten(0, 1)(tiles(4, 32))),
    "reshape-dynamic": lambda: Reshape(3)(parts()[0]),
    "reshape-pad-selectors": lambda: Reshape(3, pad=0.0)(route()),
    "reshape-outermost": lambda: Reshape(2, outermost=True)(tiles()),
    "promote": lambda: Promote(5)(tiles()),
    "promote-negative": lambda: Promote(-1)(tiles()),
    "repeat": lambda: Repeat(0)(tiles()),
    "expand-rank": lambda: Expand()(Flatten(0, 1)(tiles()), more()),
    "expand-inner": lambda: Expand()(tiles(), more()),
    "expand-outer": lambda: Expand()(tiles(2, 32), more()),
    "expand-rank-0": lambda: Expand(rank=0)(tiles(4, 32), more()),
    "intersect-tiles": lambda: Intersect()(tiles(), more()),
    "intersect-rank": lambda: Intersect()(Flatten(0, 1)(numbers()), Flatten(0, 1)(others())),
    "intersect-outer": lambda: Intersect()(Promote(0)(numbers(3)), Promote(0)(others())),
    "union-filler": lambda: Union(0.5)(numbers(), others()),
    "union-selectors": lambda: Union()(Zip()(numbers(), route()), others()),
    "scatter-addresses": lambda: Scatter(4)(tiles(), more()),
    "scatter-shape": lambda: Scatter(4)(numbers(3), others(4)),
    "scatter-rank": lambda: Scatter(4, rank=2)(numbers(), others()),
    "scatter-selectors": lambda: Scatter(4)(numbers(), route()),
    "scatter-initial": lambda: Scatter(4, initial=0.5)(numbers(), others()),
    "zip": lambda: Zip()(tiles(), more(4, 32)),
    "zip-rank": lambda: Zip()(tiles(), Flatten(0, 1)(more())),
    "map-shape": lambda: Map(Add())(tiles(), more(4, 32)),
    "map-known": lambda: Map(Add())(tiles(), more(8, 64)),
    "map-element": lambda: Map(SiLU())(route()),
    "map-count": lambda: Map(SiLU())(tiles(), more()),
    "map-one": lambda: Map(Mul())(tiles()),
    "map-add": lambda: Map(Add())(tiles(4, 64, (2, 32)), more(6, 64, (3, 32))),
    "map-mul": lambda: Map(Mul())(tiles(4, 64, (2, 32)), more(4, 32, (2, 16))),
    "map-matmul": lambda: Map(Matmul())(tiles(), more()),
    "map-transposed": lambda: Map(Matmul(transposed=True))(
        tiles(4, 64, (1, 32)), more(64, 32, (16, 16))
    ),
    "map-offset": lambda: Map(SetOffset())(tiles(), more()),
    "map-append": lambda: Map(RowAppend())(tiles(4, 64, (1, 32)), more(4, 32, (1, 16))),
    "accum-rank-0": lambda: Accum(Sum(), rank=0)(tiles()),
    "accum-rank-3": lambda: Accum(Sum(), rank=3)(tiles()),
    "accum-element": lambda: Accum(Sum())(route()),
    "accum-shapes": lambda: Accum(MatmulSum())(tiles(), more(4, 32)),
    "accum-matmul": lambda: Accum(MatmulSum())(tiles(), more()),
    "accum-count": lambda: Accum(RetileRow())(tiles(), more()),
    "scan-rank": lambda: Scan(Sum(), rank=4)(tiles()),
    "scan-element": lambda: Scan(Sum())(route()),
    "flat-map-element": lambda: FlatMap(SplitRows())(route()),
    "flat-map-tiles": lambda: FlatMap(SplitTiles(3, 32))(tiles(4, 64, (2, 32))),
    "flat-map-zero": lambda: FlatMap(SplitTiles(0, 32))(tiles()),
    "flat-map-selectors": lambda: FlatMap(SplitCols())(route()),
    "partition-width": lambda: Partition(3)(Flatten(0, 1)(tiles()), route()),
    "partition-rank": lambda: Partition(2)(tiles(), route()),
    "partition-tiles": lambda: Partition(2)(tiles(), more()),
    "partition-outer": lambda: Partition(2, rank=1)(tiles(8, 64), route()),
    "partition-negative": lambda: Partition(2, rank=-1)(tiles(), route()),
    "reassemble-width": lambda: Reassemble()(parts()[:1], other_route()),
    "reassemble-rank": lambda: Reassemble(rank=1)([*parts()], other_route()),
    "reassemble-value": lambda: Reassemble()(
        [parts()[0], Flatten(0, 2)(more(4, 64, (1, 64)))], other_route()
    ),
    "merge-none": lambda: EagerMerge()([]),
    "merge-rank": lambda: EagerMerge()([tiles()]),
    "merge-value": lambda: EagerMerge()([Flatten(0, 2)(tiles()), Flatten(0, 1)(route())]),
    "merge-inner": lambda: EagerMerge(rank=1)(
        [Flatten(1, 2)(tiles()), Flatten(1, 2)(more(4, 32, (1, 32)))]
    ),
    "parallelize-rank": lambda: Parallelize(2)(tiles()),
    "parallelize-none": lambda: Parallelize(0, rank=2)(tiles()),
    "bufferize-rank": lambda: Bufferize(0)(tiles()),
    "bufferize-deep": lambda: Bufferize(4)(tiles()),
    "bufferize-selectors": lambda: Bufferize(1)(route()),
    "streamify-tiles": lambda: Streamify()(tiles()),
    "streamify-repeats": lambda: Streamify(repeats=(0,))(Bufferize(1)(tiles())),
    "streamify-reference": lambda: Streamify()(Bufferize(1)(tiles()), more(8, 64)),
    "expert-addresses": lambda: ExpertAddresses(4)(tiles()),
    "cache-addresses": lambda: CacheReadAddresses(4)(tiles(), more()),
    "filter-last": lambda: FilterLastTile()(tiles()),
    "feedback-rank": lambda: Feedback(StreamType((1,), INTEGER)).connect(numbers()),
    "feedback-value": lambda: Feedback(StreamType((1, 4), INTEGER)).connect(route()),
    "assume-rank": lambda: tiles().assume(1, 4),
    "assume-size": lambda: tiles().assume(1, 4, 3),
    "no-stream": lambda: Map(SiLU())(3),  # type: ignore[arg-type]
    "same-name": lambda: Map(SiLU(), name="x")(tiles()),
}

GOLDEN = Path(__file__).parent / "golden" / "shape_errors.txt"
MESSAGES = dict(line.split(": ", 1) for line in GOLDEN.read_text(encoding="utf-8").splitlines())
"""The whole message for each case, read by a person before it came here."""


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    """The whole sentence: who, what was found, what was expected; and the line in this file."""
    with Program("p"), pytest.raises(ProgramError) as refused:
        CASES[name]()

    message = re.sub(rf"{re.escape(__file__)}:\d+", "FILE:LINE", refused.value.message)
    assert MESSAGES[name] == message
    assert str(refused.value).startswith(f"{__file__}:{refused.value.line}: ")


def test_enough() -> None:
    """At least sixty wrong programs."""
    assert len(CASES) >= 60
    assert CASES.keys() == MESSAGES.keys()


class TestWhole:
    """What is found when a program is complete."""

    def test_empty(self) -> None:
        """A program without operators."""
        program = Program("nothing")
        with pytest.raises(ProgramError) as refused:
            simulate(program)

        assert "program 'nothing' has no operators: expected at least one" == (
            refused.value.message
        )

    def test_unread(self) -> None:
        """A primary output that nobody reads."""
        with Program("p") as program:
            tiles()
        with pytest.raises(ProgramError) as refused:
            simulate(program)

        assert (
            "x: output 0 ([1, 4, 2] of 1x32 bfloat16) is read by no operator: expected a reader, "
            "such as a store"
        ) == refused.value.message

    def test_other_program(self) -> None:
        """A stream of another program."""
        with Program("first"):
            foreign = tiles()
        with Program("second") as program:
            LinearOffChipStore("y", name="store")(foreign)
        with pytest.raises(ProgramError) as refused:
            simulate(program)

        assert (
            "store reads x.0 [1, 4, 2] of 1x32 bfloat16, a stream of another program: expected one "
            "made in 'second'"
        ) == refused.value.message

    def test_open_feedback(self) -> None:
        """A feedback that is never connected."""
        with Program("p") as program:
            Map(SiLU())(Feedback(tiles().type))
        with pytest.raises(ProgramError) as refused:
            simulate(program)

        assert (
            "Feedback of [1, 4, 2] of 1x32 bfloat16 is used but never connected: expected "
            "connect(stream)"
        ) == refused.value.message

    def test_outside(self) -> None:
        """An operator that is called in no program."""
        with pytest.raises(ProgramError) as refused:
            tiles()

        assert (
            "LinearOffChipLoad is called outside a program: expected `with Program(...)`"
        ) == refused.value.message

"""Layouts of streams: what each operator makes of them, against the tiles that a run sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Feedback, Layout, Program, ShapeError, Stream, StreamType, TileType, simulate
from fabric.extend import Loop
from fabric.graph.values.dims import symbol
from operators import (
    Accum,
    Add,
    Bufferize,
    Expand,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    MatmulSum,
    Maximum,
    Metadata,
    Mul,
    Partition,
    Promote,
    Repeat,
    Reshape,
    RetileCol,
    RetileRow,
    Scan,
    Selectors,
    SiLU,
    SplitCols,
    SplitRows,
    SplitTiles,
    Streamify,
    Sum,
    Tensor,
    Zip,
    loaded,
)
from tests.fabric.layouts.layouts import streamed, tensor
from tests.operators.driving import Emit
from tests.operators.test_convert import orders, tiles
from tests.profiles import examples

SHAPES = ((8, 8), (4, 12), (4, 2, 6))
STEPS = 5


def _maximum(stream: Stream, _: Any) -> Stream:
    return Map(Maximum())(stream, stream)


def _reshape(stream: Stream, pick: Any) -> Stream:
    dims = [
        (at, size)
        for at, size in enumerate(reversed(stream.shape))
        if isinstance(size, int) and size % 2 == 0
    ]
    return Reshape(2, pick(dims)[0])(stream)[0] if dims else stream


def _flatten(stream: Stream, pick: Any) -> Stream:
    inner = pick(range(stream.rank)) if stream.rank else 0
    return Flatten(inner, inner + 1)(stream) if stream.rank else stream


def _buffer(stream: Stream, pick: Any) -> Stream:
    if not stream.rank:
        return stream
    rank = pick(range(1, stream.rank + 1))
    size = int(np.prod(stream.shape[-rank:]))
    buffers = Bufferize(rank)(stream)
    kind = pick(("again", "affine", "referred"))
    if kind == "again":
        return Streamify(repeats=(pick((1, 2)),))(buffers)
    if kind == "referred" and stream.shape[0] == 1:
        guide = Metadata(np.zeros((*stream.shape[1:-rank], 2), np.int64))()
        return Streamify()(buffers, guide)
    offset = pick(range(size))
    stride = pick(range(1, size + 1))
    count = 1 + (size - 1 - offset) // stride
    return Streamify(shape=(2, count), strides=(0, stride), offset=offset)(buffers)


def _expand(stream: Stream, _: Any) -> Stream:
    if stream.shape[0] != 1:
        return stream
    guide = Metadata(np.zeros((*stream.shape[1:], 3), np.int64))()
    return Expand()(Promote(0)(stream), guide)


def _split(stream: Stream, pick: Any) -> Stream:
    tile: Any = stream.value
    rows = pick([n for n in range(1, tile.rows + 1) if tile.rows % n == 0])
    cols = pick([n for n in range(1, tile.cols + 1) if tile.cols % n == 0])
    return FlatMap(SplitTiles(rows, cols))(stream)


def _retile(stream: Stream, pick: Any) -> Stream:
    rank = pick(range(1, stream.rank + 1)) if stream.rank else 0
    return Accum(pick((RetileRow, RetileCol))(), rank=rank)(stream) if rank else stream


CHANGES = {
    "maximum": _maximum,
    "flatten": _flatten,
    "promote": lambda stream, pick: Promote(pick(range(len(stream.shape) + 1)))(stream),
    "reshape": _reshape,
    "repeat": lambda stream, pick: Repeat(pick((1, 2)))(stream),
    "expand": _expand,
    "buffer": _buffer,
    "rows": lambda stream, _: FlatMap(SplitRows())(stream),
    "split": _split,
    "retile": _retile,
}


def column(stream: Stream, name: str) -> None:
    """Store the tiles of ``stream`` below each other."""
    if stream.rank:
        stream = Flatten(0, stream.rank)(stream)
    LinearOffChipStore(name)(Promote(0)(stream))


def test_chains() -> None:
    """Operators one after the other: where the order is known it is the one that is sent.

    No operator hides behind an order that is never known.
    """
    known: set[str] = set()
    chained(known)
    assert known == CHANGES.keys()


@given(st.data())
@examples(quick=150)
def chained(known: set[str], data: st.DataObject) -> None:
    """Wire operators one after the other; ``known`` gets those whose order is known at the end."""
    shape = data.draw(st.sampled_from(SHAPES))
    layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    x = tensor(shape).astype(np.float32)

    def pick(options: Any) -> Any:
        return data.draw(st.sampled_from(list(options)))

    with Program("chain", mode="functional") as program:
        try:
            stream = loaded(Tensor(shape, x, dtype="float32"), layout)
        except ShapeError:
            return
        names = data.draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=STEPS))
        for name in names:
            if stream.type.count > 400:
                break
            stream = CHANGES[name](stream, pick)
        column(stream, "y")
    found = stream.layout
    assert (found is None) is bool(stream.no_layout)
    if found is None:
        # Only these put together what is not together in a tensor, or read by uneven steps.
        assert {"split", "retile", "buffer", "rows"} & set(names)
        return
    known.update(names)
    sent = np.asarray(simulate(program).outputs["y"]).reshape(-1, found.rows, found.cols)
    expected = [tile.reshape(found.rows, found.cols).tolist() for tile in streamed(x, found)]
    assert sent.tolist() == expected


def test_sum() -> None:
    """The sum of all blocks of columns is as wide as a block; that of half of them is no tensor."""
    x = np.arange(64.0).reshape(8, 8)
    with Program("sum", mode="functional") as program:
        blocks = LinearOffChipLoad(Tensor((8, 8), x, dtype="float32"), (4, 2))()
        total = Accum(Sum())(blocks)
        column(total, "y")
        half, _ = Reshape(2)(blocks)
        part = Accum(Sum())(half)
        column(part, "part")
    assert total.layout == Layout((8, 2), (4, 2), (2,), (4,), (0,))
    expected = x[:, 0:2] + x[:, 2:4] + x[:, 4:6] + x[:, 6:8]
    sent = np.asarray(simulate(program).outputs["y"])
    assert sent.tolist() == np.concatenate(streamed(expected, total.layout)).tolist()
    assert part.no_layout == "sum_2: its groups are parts of a dimension"


def test_of_two_tensors() -> None:
    """Tiles of tensors of different shapes are laid out like those that come first."""
    with Program("two"):
        whole = LinearOffChipLoad(np.ones((8, 4)), (4, 4))()
        part = LinearOffChipLoad(np.ones((8, 8)), (4, 4), (2, 1), (2, 1))()
        sums = Map(Add())(whole, part)
        others = Map(Add())(part, whole)
    assert whole.layout != part.layout
    assert sums.layout == whole.layout
    assert others.layout == part.layout


def test_sum_of_what_is_read_again() -> None:
    """Tiles that are added to themselves are of the same tensor, tile by tile."""
    with Program("again"):
        blocks = LinearOffChipLoad(np.ones((8, 8)), (4, 2))()
        total = Accum(Sum())(Repeat(3)(blocks))
    assert total.layout == blocks.layout


def test_load() -> None:
    """A view by strides says what it reads; once for each element of a reference, too."""
    x = np.ones((8, 8))
    with Program("load"):
        columns = LinearOffChipLoad(x, (4, 2), (4, 2), (1, 4))()
        again = LinearOffChipLoad(x, (4, 2), (2, 4), (4, 1))(Metadata(np.zeros(3, int))())
        backwards = LinearOffChipLoad(x, (4, 2), (4,), (-1,), 3, name="backwards")()
    assert columns.layout == Layout.tiled((8, 8), (4, 2), (1, 0))
    assert again.layout == Layout((8, 8), (4, 2), (3, 2, 4), (1, 4, 2), (None, 0, 1))
    assert backwards.no_layout == "backwards: its steps are none of loops over the tensor"


CUBE = Layout.tiled((4, 6, 12), (2, 3, 6))
"""Two tiles along each dimension, of 6 rows and 6 columns."""

PARTS: list[tuple[SplitRows | SplitTiles, Layout | str]] = [
    (SplitTiles(6, 3), Layout((4, 6, 12), (2, 3, 3), (2, 2, 4), (2, 3, 3), (0, 1, 2))),
    (SplitTiles(3, 6), Layout((4, 6, 12), (1, 3, 6), (2, 2, 2, 2), (2, 3, 6, 1), (0, 1, 2, 0))),
    (
        SplitTiles(1, 2),
        Layout(
            (4, 6, 12),
            (1, 1, 2),
            (2, 2, 2, 2, 3, 3),
            (2, 3, 6, 1, 1, 2),
            (0, 1, 2, 0, 1, 2),
        ),
    ),
    (
        SplitRows(),
        Layout((4, 6, 12), (1, 1, 6), (2, 2, 2, 2, 3), (2, 3, 6, 1, 1), (0, 1, 2, 0, 1)),
    ),
    (SplitTiles(2, 6), "the rows of its parts are no box of the tensor"),
]


@pytest.mark.parametrize(("split", "expected"), PARTS)
def test_parts(split: SplitRows | SplitTiles, expected: Layout | str) -> None:
    """Rows of a part run through the innermost dimensions first: 2 of 2 x 3 are no box."""
    found = split.layout(CUBE)
    if isinstance(expected, str):
        assert expected == found
    else:
        assert not isinstance(found, str)
        assert found.same_order(expected)


SQUARE = Layout.tiled((8, 16), (2, 4))
DOWN, ACROSS = Loop(4, 2, 0), Loop(4, 4, 1)
PART = "its groups are parts of a dimension"
BELOW = "it puts tiles below each other that are not so in the tensor"
BESIDE = "it puts tiles beside each other that are not so in the tensor"

Loops = tuple[Loop, ...]
GROUPS: list[tuple[Any, Layout, Loops, Loops, Layout | str]] = [
    (Sum(), SQUARE, (DOWN,), (ACROSS,), Layout((8, 4), (2, 4), (4,), (2,), (0,))),
    (Sum(), SQUARE, (ACROSS,), (DOWN,), Layout((2, 16), (2, 4), (4,), (4,), (1,))),
    (Sum(), SQUARE, (), (DOWN, ACROSS), Layout((2, 4), (2, 4), (), (), ())),
    (Sum(), SQUARE, (DOWN, ACROSS), (Loop(1, 4, 1),), SQUARE),
    (Sum(), SQUARE, (DOWN, ACROSS), (Loop(3, 1, None),), SQUARE),
    (
        Sum(),
        SQUARE,
        (Loop(1, 4, 1), DOWN),
        (Loop(2, 8, 1), Loop(2, 4, 1)),
        Layout((8, 4), (2, 4), (1, 4), (4, 2), (1, 0)),
    ),
    (Sum(), SQUARE, (), (Loop(2, 4, 1), Loop(2, 8, 1)), PART),
    (Sum(), SQUARE, (Loop(2, 8, 1),), (Loop(2, 4, 1),), PART),
    (Sum(), SQUARE, (Loop(2, 4, 1),), (ACROSS,), PART),
    (Sum(), Layout((8, 18), (2, 4), (4,), (4,), (1,)), (), (ACROSS,), PART),
    (Sum(), Layout((8, 16), (2, 4), (), (), (), (1, 0)), (), (ACROSS,),
     Layout((8, 4), (2, 4), (), (), (), (1, 0))),
    (RetileRow(), SQUARE, (ACROSS,), (DOWN,), Layout((8, 16), (8, 4), (4,), (4,), (1,))),
    (RetileRow(), SQUARE, (), (Loop(2, 2, 0),), Layout((8, 16), (4, 4), (), (), ())),
    (RetileRow(), SQUARE, (), (Loop(2, 4, 0),), BELOW),
    (RetileRow(), SQUARE, (), (ACROSS,), BELOW),
    (RetileRow(), SQUARE, (), (Loop(2, 1, None),), BELOW),
    (RetileRow(), CUBE, (), (Loop(2, 3, 1),), BELOW),
    (RetileRow(), CUBE, (), (Loop(2, 2, 0),), Layout((4, 6, 12), (4, 3, 6), (), (), ())),
    (
        RetileRow(),
        Layout((4, 6, 12), (1, 3, 6), (), (), ()),
        (),
        (Loop(4, 1, 0), Loop(2, 3, 1)),
        Layout((4, 6, 12), (4, 6, 6), (), (), ()),
    ),
    (RetileCol(), SQUARE, (DOWN,), (ACROSS,), Layout((8, 16), (2, 16), (4,), (2,), (0,))),
    (RetileCol(), SQUARE, (), (Loop(2, 8, 1),), BESIDE),
    (RetileCol(), SQUARE, (), (DOWN,), BESIDE),
    (RetileCol(), CUBE, (), (Loop(2, 6, 2),), Layout((4, 6, 12), (2, 3, 12), (), (), ())),
    (MatmulSum(), SQUARE, (DOWN,), (ACROSS,), "MatmulSum makes another tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("reduction", "layout", "outer", "inner", "expected"), GROUPS)
def test_groups(
    reduction: Any, layout: Layout, outer: Loops, inner: Loops, expected: Layout | str
) -> None:
    """What sums and tiles put together of a group are of, and why of no tensor."""
    found = reduction.layout(layout, outer, inner)
    if isinstance(expected, str):
        assert expected == found
    else:
        assert found.shape == expected.shape
        assert found.tile == expected.tile
        assert found.same_order(expected)


@dataclass(frozen=True)
class _Of3(Maximum):
    """Numbers made of three in their places."""

    operands: ClassVar = 3

    @override
    def infer(self, *inputs: Any) -> Any:
        return inputs[0]


def test_sum_of_three() -> None:
    """Each of the operands has to be in the order of the first, whichever tensors they are of."""

    def rows(count: int = 2) -> Stream:
        return LinearOffChipLoad(np.ones((4 * count, 8)), (4, 4), (2, 2), (2, 1))()

    def columns() -> Stream:
        return LinearOffChipLoad(np.ones((8, 8)), (4, 4), (2, 2), (1, 2))()

    joined = (
        "it joins (8x8 in tiles of 4x4, [2, 2] steps [4, 4] -> (0, 1)) with "
        "(8x8 in tiles of 4x4, [2, 2] steps [4, 4] -> (1, 0))"
    )
    with Program("three"):
        for number, streams in enumerate(
            ((rows(), rows(), columns()), (rows(), columns(), rows()), (rows(3), columns(), rows()))
        ):
            found = Map(_Of3(), name=f"of_{number}")(*streams).no_layout
            assert found == (f"of_{number}: {joined}" if number < 2 else None)
            pairs = Zip(name=f"zip_{number}")(*streams).no_layout
            assert str(pairs).startswith(f"zip_{number}: it joins (")
        sums = Map(_Of3())(rows(3), columns(), rows(3))
    assert sums.layout == Layout((12, 8), (4, 4), (2, 2), (4, 4), (0, 1))


def test_data_decide() -> None:
    """How often tiles are repeated, read or put together: then there is no order, and a reason."""
    n, tile = symbol("n", ragged=True), TileType(2, 4, np.dtype(np.float32))
    laid = Layout((8, 4), (2, 4), (4,), (2,), (0,))

    def of(*shape: Any, value: Any = tile) -> Stream:
        return Emit(StreamType(shape, value), [])()

    def known(*shape: Any) -> Stream:
        return of(*shape).laid_out(laid)

    with Program("ragged"):
        found = [
            Expand(name="expand")(known(4, 1), of(4, n)),
            Streamify(name="streamify")(Bufferize()(known(1, 4)), of(1, n)),
            Streamify((2,), (0,), (1,), name="none")(Bufferize()(known(1, 4))),
            Streamify((2,), (3,), (-1,), 3, name="back")(Bufferize()(known(1, 4))),
            FlatMap(SplitCols(), name="columns")(known(4)),
            Scan(Sum(), name="scan")(known(1, 4)),
        ]
    assert [each.no_layout for each in found] == [
        "expand: data decide how often it repeats each tile",
        "streamify: data decide how often it reads each tile",
        "none: it reads nothing",
        "back: its steps are none of loops over the buffer",
        "columns: SplitCols does not say which parts it makes",
        "scan: it does not say which tiles it makes",
    ]


class TestDropped:
    """Why there is no layout, and who says so first."""

    def test_data_decide(self) -> None:
        """Behind a Partition nobody knows; operators behind it pass the reason on."""
        with Program("partition"):
            rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((4, 4)), (1, 4))())
            route = Flatten(0, 1)(Selectors(np.array([[0], [1], [1], [0]]), 2)())
            even, _ = Partition(2, name="route")(rows, route)
            later = Map(SiLU())(Promote(0)(even))
        reason = "route: data decide which of its tiles come where"
        assert even.layout is None
        assert even.no_layout == later.no_layout == reason

    def test_other_tensors(self) -> None:
        """A product is of another tensor; padding is of none; a feedback comes before its order."""
        with Program("others"):
            square = LinearOffChipLoad(np.ones((4, 4)), (4, 4), name="square")()
            product = Map(Matmul(), name="product")(square, square)
            rows = LinearOffChipLoad(np.ones((3, 4)), (1, 4))()
            flat = Flatten(0, 1)(rows)
            padded, flags = Reshape(2, pad=0.0, name="padded")(flat)
            feedback = Feedback(square.type)
        assert product.no_layout == "product: Matmul makes another tensor"
        assert padded.no_layout == "padded: 3 tiles in place of [1, 2, 2]"
        assert flags.no_layout == "padded: flags are no tiles"
        assert feedback.no_layout == "a feedback is used before its order is known"

    def test_two_orders(self) -> None:
        """Sums and pairs of two orders that nobody states have none, and are no mistake."""
        x = np.ones((8, 8))
        with Program("orders"):
            rows = LinearOffChipLoad(x, (4, 4))()
            columns = LinearOffChipLoad(x, (4, 4), (2, 2), (1, 2))()
            total = Map(Add(), name="total")(rows, columns)
            pairs = Zip(name="pairs")(rows, columns)
            fine = Zip()(rows, rows)
            unknown = Map(Matmul(transposed=True), name="product")(rows, rows)
            hidden = Zip()(rows, unknown), Zip()(unknown, rows)
        for stream in (total, pairs):
            assert str(stream.no_layout).startswith(f"{stream.name[:5]}: it joins (8x8 in tiles")
        assert fine.layout == rows.layout
        assert {"product: Matmul makes another tensor"} == {each.no_layout for each in hidden}


class TestStated:
    """Layouts that the program states."""

    def test_of_unknown_order(self) -> None:
        """What is stated holds from there on."""
        with Program("stated"):
            square = LinearOffChipLoad(np.ones((4, 4)), (2, 2))()
            product = Map(Matmul())(square, square).laid_out(Layout.tiled((4, 4), (2, 2)))
            again = Repeat(2)(product.assume(1, 2, 2))
        assert again.layout == Layout((4, 4), (2, 2), (2, 2, 2), (2, 2, 1), (0, 1, None))

    def test_mismatch(self) -> None:
        """Two orders that come together: both of them, and the converter with its bytes."""
        with Program("mismatch"):
            square = LinearOffChipLoad(np.ones((4, 4)), (2, 2), name="square")()
            columns = Layout.tiled((4, 4), (2, 2), (1, 0))
            turned = Map(Matmul(), name="turned")(square, square).laid_out(columns)
            later = Map(SiLU(), name="later")(turned)
            with pytest.raises(ShapeError) as caught:
                Map(Mul(), name="gate")(square, later)
            # A product of matrices joins tiles of different places.
            Map(Matmul())(square, later)
        assert caught.value.message == (
            "gate joins square.0 [1, 2, 2] of 2x2 bfloat16 and later.0 [1, 2, 2] of 2x2 bfloat16 "
            "in two orders: (0, 0), (0, 2), (2, 0), (2, 2) of 4x4 in tiles of 2x2, [2, 2] steps "
            "[2, 2] -> (0, 1), and (0, 0), (2, 0), (0, 2), (2, 2) of 4x4 in tiles of 2x2, [2, 2] "
            "steps [2, 2] -> (1, 0): expected one order, such as behind Convert, which keeps 4x4 "
            "of it in 4 tiles, 32 bytes"
        )

    def test_late_difference(self) -> None:
        """Of orders that differ late their beginning is shown, and the first tile that differs."""
        again = Layout((8, 2), (1, 2), (2, 4), (1, 1), (None, 0))
        with Program("late"):
            rows = LinearOffChipLoad(np.ones((8, 2)), (1, 2), name="rows")()
            with pytest.raises(ShapeError) as caught:
                rows.laid_out(again)
        assert caught.value.message.startswith(
            "laid_out gives rows.0 [1, 8, 1] of 1x2 bfloat16 another order than it has: (0, 0), "
            "(1, 0), (2, 0), ..., (4, 0), ... of 8x2 in tiles of 1x2, [8, 1] steps [1, 1] -> "
            "(0, -), and (0, 0), (1, 0), (2, 0), ..., (0, 0), ... of 8x2 in tiles of 1x2, [2, 4] "
            "steps [1, 1] -> (again, 0): expected one order, such as behind Convert"
        )

    def test_runs(self) -> None:
        """What is stated has no hop and changes no cycle."""

        def program(stated: bool) -> Program:
            with Program("runs") as program:
                rows = LinearOffChipLoad(np.ones((4, 4)), (2, 2))()
                if stated:
                    rows = rows.laid_out(Layout.tiled((4, 4), (2, 2))).assume(1, 2, 2)
                LinearOffChipStore("y")(rows)
            return program

        reports = [simulate(program(stated)) for stated in (False, True)]
        assert reports[0].cycles == reports[1].cycles
        assert reports[0].warnings == reports[1].warnings
        assert len(reports[0].channels_counters) == len(reports[1].channels_counters)

"""Every operator refuses what does not fit at the line that wires it, saying what it found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from fabric import (
    Feedback,
    Program,
    SelectorType,
    ShapeError,
    Stream,
    StreamType,
    TileType,
    TupleType,
)
from fabric.extend import BufferType, ValueType
from fabric.graph.values.dims import symbol
from operators import (
    INTEGER,
    Accum,
    Add,
    Bufferize,
    CacheReadAddresses,
    CacheWriteAddress,
    EagerMerge,
    Exp,
    Expand,
    ExpertAddresses,
    FlatMap,
    Flatten,
    Intersect,
    LeadingCols,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    MaskScores,
    Matmul,
    MatmulSum,
    PadRows,
    Parallelize,
    Partition,
    Promote,
    Quotient,
    Reassemble,
    Repeat,
    Reshape,
    RetileCol,
    RetileRow,
    RowAppend,
    ScaledAdd,
    Scan,
    Scatter,
    Selectors,
    ShiftedExp,
    SignalAllRead,
    SplitRows,
    SplitTiles,
    Streamify,
    Sum,
    Union,
    Zip,
)
from tests.operators.driving import FLOAT, NUMBER, Emit

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)
TILE = TileType(2, 4, F32)
RAGGED, OTHER = symbol("n", ragged=True), symbol("m", ragged=True)
ONE, COLUMN = TileType(1, 1, F32), TileType(2, 1, F32)
TWO = SelectorType(2)


def stream(*shape: object, value: ValueType = TILE) -> Stream:
    """Return a stream of tiles, or of something else."""
    return Emit(StreamType(shape, value), [])()


def selectors(width: int, *shape: object) -> Stream:
    """Return a stream of selectors."""
    return stream(*shape, value=SelectorType(width))


def buffers(*shape: object, of: tuple[object, ...]) -> Stream:
    """Return a stream of buffers."""
    return stream(*shape, value=BufferType(of, TILE))


def wide(count: int) -> Stream:
    """Return a stream of tuples of so many tiles."""
    return stream(2, value=TupleType((TILE,) * count))


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Map(Add())(stream(2, 3), stream(2, 4)),
        "Map(Add) joins emit_1.0 [2, 3] of 2x4 float32 and emit_2.0 [2, 4] of 2x4 "
        "float32: expected the same shape",
    ),
    (
        lambda: Map(Add())(stream(2, 3), stream(3)),
        "Map(Add) joins emit_1.0 [2, 3] of 2x4 float32 and emit_2.0 [3] of 2x4 float32: "
        "expected the same shape",
    ),
    (
        lambda: Map(Add())(stream(3)),
        "Map(Add) is given 2x4 float32: expected 2 tiles",
    ),
    (
        lambda: Map(Add())(),  # noqa: PLW0108 - its line is asked for
        "Map(Add) is given no stream: expected at least one",
    ),
    (
        lambda: Map(Add())(stream(3), stream(3, value=NUMBER)),
        "Map(Add) is given 2x4 float32, bool: expected 2 tiles",
    ),
    (
        lambda: Map(Exp())(stream(3), stream(3, value=NUMBER)),
        "Map(Exp) is given 2x4 float32, bool: expected 1 tile",
    ),
    (
        lambda: Map(Add())(stream(3), stream(3, value=TileType(2, 4, F16))),
        "Map(Add) is given 2x4 float32, 2x4 float16: expected one element type",
    ),
    (
        lambda: Map(Add())(stream(3), stream(3, value=TileType(2, 3, F32))),
        "Add joins 2x4 float32 and 2x3 float32: expected equal sizes, or 1",
    ),
    *(
        (
            lambda a=a, b=b: Map(Add())(stream(3, value=a), stream(3, value=b)),
            f"Add joins {a} and {b}: expected equal sizes, or 1",
        )
        for a, b in permutations((TileType(2, 4, F32), TileType(0, 4, F32)))
    ),
    (
        lambda: Map(Matmul())(stream(3), stream(3)),
        "Matmul multiplies 2x4 float32 by 2x4 float32: expected equal inner dimensions",
    ),
    (
        lambda: Accum(Sum(), 2)(stream(2, 3)),
        "Accum(Sum) folds rank 2, but emit_1.0 [2, 3] of 2x4 float32 has rank 1: expected"
        " 1 <= rank <= 1",
    ),
    (
        lambda: Accum(MatmulSum())(stream(2, 3)),
        "Accum(MatmulSum) is given 2x4 float32: expected 2 tiles",
    ),
    (
        lambda: Accum(MatmulSum())(stream(2, 3), stream(2, 2)),
        "Accum(MatmulSum) joins emit_1.0 [2, 3] of 2x4 float32 and emit_2.0 [2, 2] of 2x4"
        " float32: expected the same shape",
    ),
    (
        lambda: Scan(Sum(), 0)(stream(2, 3)),
        "Scan(Sum) folds rank 0, but emit_1.0 [2, 3] of 2x4 float32 has rank 1: expected "
        "1 <= rank <= 1",
    ),
    (
        lambda: FlatMap(SplitTiles(2, 3))(stream(2, 3)),
        "SplitTiles cuts 2x4 float32 into 2x3: expected a divisor of each",
    ),
    (
        lambda: FlatMap(SplitTiles(2, 2))(stream(2, 3, value=NUMBER)),
        "FlatMap(SplitTiles) is given bool: expected 1 tile",
    ),
    (
        lambda: Flatten(1, 2)(stream(2, 3)),
        "Flatten merges dimensions 1 to 2 of emit_1.0 [2, 3] of 2x4 float32: expected 0 "
        "<= inner < outer <= 1",
    ),
    (
        lambda: Flatten(1, 1)(stream(2, 3)),
        "Flatten merges dimensions 1 to 1 of emit_1.0 [2, 3] of 2x4 float32: expected 0 "
        "<= inner < outer <= 1",
    ),
    (
        lambda: Reshape(2)(stream(2, 3)),
        "Reshape splits dimension 0 of emit_1.0 [2, 3] of 2x4 float32 into chunks of 2, "
        "which may need padding: expected pad=...",
    ),
    (
        lambda: Reshape(2, 1, pad=0.0)(stream(3, 2)),
        "Reshape splits dimension 1 of emit_1.0 [3, 2] of 2x4 float32 into chunks of 2: "
        "expected a static dimension that is a multiple",
    ),
    (
        lambda: Reshape(2, 1)(stream(RAGGED, 2)),
        "Reshape splits dimension 1 of emit_1.0 [n~, 2] of 2x4 float32 into chunks of 2: "
        "expected a static dimension that is a multiple",
    ),
    (
        lambda: Reshape(0)(stream(3)),
        "Reshape splits dimension 0 of emit_1.0 [3] of 2x4 float32 into chunks of 0: "
        "expected a dimension from 0 to 0 and chunks of at least 1",
    ),
    (
        lambda: Reshape(2, 2)(stream(3, 2)),
        "Reshape splits dimension 2 of emit_1.0 [3, 2] of 2x4 float32 into chunks of 2: "
        "expected a dimension from 0 to 1 and chunks of at least 1",
    ),
    (
        lambda: Reshape(2, pad=0.0)(stream(3, value=NUMBER)),
        "Reshape pads emit_1.0 [3] of bool: expected a stream of tiles of a static size",
    ),
    *(
        (
            lambda each=each: Reshape(2, pad=0.0)(stream(3, value=each)),
            f"Reshape pads emit_1.0 [3] of {each}: expected a stream of tiles of a static size",
        )
        for each in (TileType(RAGGED, 4, F32), TileType(2, RAGGED, F32))
    ),
    *(
        (
            lambda each=each: Scatter(8, "add")(
                stream(2, 3, value=INTEGER), stream(2, 3, value=each)
            ),
            f"Scatter updates by emit_2.0 [2, 3] of {each}: expected tiles of a static size",
        )
        for each in (TileType(RAGGED, 4, F32), TileType(2, RAGGED, F32))
    ),
    *(
        (
            lambda each=each: Union()(*[stream(2, 3, value=TupleType((INTEGER, each)))] * 2),
            f"Union fills what is missing in emit_1.0 [2, 3] of (1x1 uint64, {each}): expected "
            "tiles of a static size",
        )
        for each in (TileType(RAGGED, 4, F32), TileType(2, RAGGED, F32))
    ),
    *(
        (
            lambda kind=kind: kind()(stream(2, 3, value=INTEGER), stream(2, 3, 4, value=INTEGER)),
            f"{kind.__name__} is given emit_1.0 [2, 3] of 1x1 uint64 and emit_2.0 [2, 3, 4] of "
            "1x1 uint64: expected the same outer dimensions",
        )
        for kind in (Intersect, Union)
    ),
    (
        lambda: Reshape(2, outermost=True)(stream(2, 2)),
        "Reshape adds an outermost dimension to emit_1.0 [2, 2] of 2x4 float32: expected rank 0",
    ),
    (
        lambda: Reshape(2)(buffers(2, of=(3,))),
        "Reshape splits emit_1.0 [2] of buffer [3] of 2x4 float32: expected a stream that"
        " holds no buffers",
    ),
    (
        lambda: Promote(3)(stream(2, 3)),
        "Promote puts a dimension outside of 3 of emit_1.0 [2, 3] of 2x4 float32: expected 0 to 2",
    ),
    (
        lambda: Repeat(0)(stream(2)),
        "Repeat repeats emit_1.0 [2] of 2x4 float32 0 times: expected at least 1",
    ),
    (
        lambda: Expand(1)(stream(2, 1), stream(2, 3, 4)),
        "Expand(rank=1) repeats emit_1.0 [2, 1] of 2x4 float32 as emit_2.0 [2, 3, 4] of "
        "2x4 float32: expected equal ranks, equal outer dimensions, and inner dimensions "
        "of 1 in the source",
    ),
    (
        lambda: Expand(1)(stream(2, 3), stream(2, 3)),
        "Expand(rank=1) repeats emit_1.0 [2, 3] of 2x4 float32 as emit_2.0 [2, 3] of 2x4 "
        "float32: expected equal ranks, equal outer dimensions, and inner dimensions of 1"
        " in the source",
    ),
    (
        lambda: Expand(1)(stream(3, 1), stream(2, 5)),
        "Expand(rank=1) repeats emit_1.0 [3, 1] of 2x4 float32 as emit_2.0 [2, 5] of 2x4 "
        "float32: expected equal ranks, equal outer dimensions, and inner dimensions of 1"
        " in the source",
    ),
    (
        lambda: Zip()(stream(2)),
        "Zip is given emit_1.0 [2] of 2x4 float32: expected two streams or more",
    ),
    (
        lambda: Zip()(stream(2), stream(3)),
        "Zip joins emit_1.0 [2] of 2x4 float32 and emit_2.0 [3] of 2x4 float32: expected "
        "the same shape",
    ),
    (
        lambda: Partition(3)(stream(2), selectors(2, 2)),
        "Partition(3) is steered by emit_2.0 [2] of selector of 2: expected selectors of 3",
    ),
    (
        lambda: Partition(2)(stream(2, 3), selectors(2, 2)),
        "Partition(rank=0) of emit_1.0 [2, 3] of 2x4 float32 is steered by emit_2.0 [2] "
        "of selector of 2: expected one selector for each sub-tensor",
    ),
    (
        lambda: Partition(2, 1)(stream(2, 3), selectors(2, 4)),
        "Partition(rank=1) of emit_1.0 [2, 3] of 2x4 float32 is steered by emit_2.0 [4] "
        "of selector of 2: expected the same outer dimensions",
    ),
    (
        lambda: Partition(2)(stream(2), stream(2)),
        "Partition(2) is steered by emit_2.0 [2] of 2x4 float32: expected selectors of 2",
    ),
    (
        lambda: Reassemble()([stream(2)], selectors(2, 2)),
        "Reassemble is steered by emit_2.0 [2] of selector of 2: expected selectors of 1, as "
        "many as it has streams",
    ),
    (
        lambda: Reassemble()([stream(2)], stream(2)),
        "Reassemble is steered by emit_2.0 [2] of 2x4 float32: expected selectors of 1, as many as "
        "it has streams",
    ),
    (
        lambda: Reassemble(1)([stream(2)], selectors(1, 2)),
        "Reassemble(rank=1) is given emit_1.0 [2] of 2x4 float32 and emit_1.0 [2] of 2x4 "
        "float32: expected rank 1 and one element type",
    ),
    (
        lambda: Reassemble()([stream(2), stream(2, value=NUMBER)], selectors(2, 2)),
        "Reassemble(rank=0) is given emit_1.0 [2] of 2x4 float32 and emit_2.0 [2] of "
        "bool: expected rank 0 and one element type",
    ),
    (
        lambda: Reassemble(1)([stream(2, 3), stream(2, 4)], selectors(2, 2)),
        "Reassemble(rank=1) is given emit_1.0 [2, 3] of 2x4 float32 and emit_2.0 [2, 4] of 2x4 "
        "float32: expected equal inner dimensions",
    ),
    (
        lambda: Bufferize(2)(stream(2, 3)),
        "Bufferize collects rank 2 of emit_1.0 [2, 3] of 2x4 float32: expected 1 <= rank <= 1",
    ),
    (
        lambda: Bufferize()(stream(2, 3, value=NUMBER)),
        "Bufferize collects emit_1.0 [2, 3] of bool: expected a stream of tiles",
    ),
    (
        lambda: Bufferize(2)(stream(2, 3, RAGGED)),
        "Bufferize collects rank 2 of emit_1.0 [2, 3, n~] of 2x4 float32: expected at "
        "most the outermost buffered dimension to be ragged",
    ),
    (
        lambda: Streamify()(stream(2)),
        "Streamify reads emit_1.0 [2] of 2x4 float32: expected a stream of buffers",
    ),
    (
        lambda: Streamify((0,))(buffers(2, of=(3,))),
        "Streamify repeats emit_1.0 [2] of buffer [3] of 2x4 float32 [0] times: expected "
        "at least 1",
    ),
    (
        lambda: Streamify()(buffers(2, 2, of=(3,)), stream(2)),
        "Streamify reads emit_1.0 [2, 2] of buffer [3] of 2x4 float32 as often as "
        "emit_2.0 [2] of 2x4 float32 says: expected the same outer dimensions",
    ),
    (
        lambda: Streamify()(buffers(2, of=(3,)), stream(3)),
        "Streamify reads emit_1.0 [2] of buffer [3] of 2x4 float32 as often as emit_2.0 "
        "[3] of 2x4 float32 says: expected the same outer dimensions",
    ),
    (
        lambda: Streamify((2,))(buffers(2, of=(3,)), stream(2)),
        "Streamify repeats emit_1.0 [2] of buffer [3] of 2x4 float32 [2] times and as "
        "often as emit_2.0 [2] of 2x4 float32 says: expected one of the two",
    ),
    (
        lambda: Streamify(shape=(2,))(buffers(2, of=(3,))),
        "Streamify reads buffer [3] of 2x4 float32 with shape (2,) and strides None: "
        "expected both, with one stride for each dimension",
    ),
    (
        lambda: Streamify(shape=(2,), strides=(1, 1))(buffers(2, of=(3,))),
        "Streamify reads buffer [3] of 2x4 float32 with shape (2,) and strides (1, 1): "
        "expected both, with one stride for each dimension",
    ),
    (
        lambda: Streamify(shape=(2,), strides=(1,))(buffers(2, of=(RAGGED,))),
        "Streamify reads buffer [n~] of 2x4 float32 with strides: expected a buffer of a "
        "static shape",
    ),
    (
        lambda: Streamify(shape=(2, 2), strides=(2, 1))(buffers(2, of=(3,))),
        "Streamify reads tiles 0 to 3 of buffer [3] of 2x4 float32: expected 0 to 2",
    ),
    (
        lambda: LinearOffChipLoad(np.zeros((4, 4)), (3, 4))(),  # noqa: PLW0108 - its line is asked for
        "LinearOffChipLoad cuts a tensor [4, 4] into tiles of 3x4: expected tiles that "
        "divide its last two dimensions",
    ),
    (
        lambda: LinearOffChipLoad(np.zeros((4, 4)), (2, 2), (2,), (1, 1))(),  # noqa: PLW0108 - its line is asked for
        "LinearOffChipLoad has a view of [2] and strides [1, 1]: expected one stride for "
        "each dimension",
    ),
    (
        lambda: LinearOffChipStore("y")(stream(2, value=NUMBER)),
        "LinearOffChipStore stores emit_1.0 [2] of bool: expected a stream of tiles",
    ),
    (
        lambda: LinearOffChipStore("y", (3, 5))(LinearOffChipLoad(np.zeros((4, 4)), (2, 2))()),
        "LinearOffChipStore stores linear_off_chip_load_1.0 [1, 2, 2] of 2x2 bfloat16 as a tensor "
        "[3, 5]: expected as many elements, of which no data decide how many",
    ),
    *(
        (
            lambda rank=rank: Expand(rank)(stream(1, 1), stream(2, 3)),
            f"Expand(rank={rank}) repeats emit_1.0 [1, 1] of 2x4 float32 as emit_2.0 [2, 3] of "
            "2x4 float32: expected equal ranks, equal outer dimensions, and inner dimensions of 1 "
            "in the source",
        )
        for rank in (0, 3)
    ),
    (
        lambda: Partition(2, -1)(stream(2), selectors(2, 2, 2)),
        "Partition(rank=-1) of emit_1.0 [2] of 2x4 float32 is steered by emit_2.0 [2, 2] "
        "of selector of 2: expected one selector for each sub-tensor",
    ),
    *(
        (
            lambda dims=dims: Flatten(*dims)(stream(2, 3)),
            f"Flatten merges dimensions {dims[0]} to {dims[1]} of emit_1.0 [2, 3] of 2x4 float32: "
            "expected 0 <= inner < outer <= 1",
        )
        for dims in ((-1, 1), (0, 2))
    ),
    (
        lambda: Promote(-1)(stream(2, 3)),
        "Promote puts a dimension outside of -1 of emit_1.0 [2, 3] of 2x4 float32: expected 0 to 2",
    ),
    (
        lambda: Reshape(2, -1)(stream(2, 4)),
        "Reshape splits dimension -1 of emit_1.0 [2, 4] of 2x4 float32 into chunks of 2: "
        "expected a dimension from 0 to 1 and chunks of at least 1",
    ),
    (
        lambda: Bufferize(0)(stream(2, 3)),
        "Bufferize collects rank 0 of emit_1.0 [2, 3] of 2x4 float32: expected 1 <= rank <= 1",
    ),
    (
        lambda: Accum(SignalAllRead())(stream(2, 3), stream(2, 3)),
        "Accum(SignalAllRead) is given 2x4 float32, 2x4 float32: expected 1 value",
    ),
    *(
        (
            lambda consumers=consumers, rank=rank: Parallelize(consumers, rank)(stream(2, 3)),
            f"Parallelize({consumers}, rank={rank}) is given emit_1.0 [2, 3] of 2x4 float32: "
            "expected rank "
            f"{rank} and at least 1 consumer",
        )
        for consumers, rank in ((0, 1), (2, 0), (2, 2))
    ),
    (
        lambda: Map(PadRows(1))(stream(2)),
        "PadRows(1) is given 2x4 float32: expected no more rows",
    ),
    *(
        (
            lambda cols=cols: Map(LeadingCols(cols))(stream(2)),
            f"LeadingCols({cols}) is given 2x4 float32: expected at least 1, and no more than "
            "there are",
        )
        for cols in (0, 5)
    ),
    *(
        (
            lambda other=other: Map(RowAppend())(stream(2), stream(2, value=other)),
            f"RowAppend appends {other} to 2x4 float32: expected equal columns and one element "
            "type",
        )
        for other in (TileType(2, 4, F16), TileType(2, 3, F32))
    ),
    *(
        (
            lambda values=values: Map(CacheWriteAddress(4))(
                *(stream(2, value=each) for each in values)
            ),
            f"CacheWriteAddress is given {values[0]} and {values[1]}: expected two 1x1 tiles of "
            "integers",
        )
        for values in ((INTEGER, ONE), (ONE, INTEGER))
    ),
    (
        lambda: Map(CacheWriteAddress(-1))(stream(2, value=INTEGER), stream(2, value=INTEGER)),
        "CacheWriteAddress has a stride of -1 tiles: expected at least 0",
    ),
    *(
        (
            lambda mask=mask: Map(MaskScores())(stream(2), stream(2, value=mask)),
            f"MaskScores is given 2x4 float32 and the mask {mask}: expected as many columns, and "
            "rows that divide those of the scores",
        )
        for mask in (TileType(2, 3, F32), TileType(3, 4, F32))
    ),
    *(
        (
            lambda other=other: Map(Quotient("float32"))(stream(2), stream(2, value=other)),
            f"Quotient is given 2x4 float32 and {other}: expected one weight for each row",
        )
        for other in (TileType(2, 4, F32), TileType(1, 1, F32))
    ),
    *(
        (
            lambda columns=columns: Map(ShiftedExp())(
                stream(2), *(stream(2, value=each) for each in columns)
            ),
            f"ShiftedExp is given 2x4 float32, {columns[0]} and {columns[1]}: expected a maximum "
            "and a factor for each row",
        )
        for columns in (
            (TileType(2, 4, F32), COLUMN),
            (COLUMN, TileType(2, 4, F32)),
            (TileType(1, 1, F32), COLUMN),
        )
    ),
    *(
        (
            lambda other=other: Map(ScaledAdd())(stream(2), stream(2, value=other)),
            f"ScaledAdd adds {other} to 2x4 float32: expected equal sizes, or 1 in what is added",
        )
        for other in (TileType(3, 4, F32), TileType(2, 3, F32))
    ),
    (
        lambda: Map(Matmul())(stream(2), stream(2, value=TileType(4, 2, F16))),
        "Map(Matmul) is given 2x4 float32, 4x2 float16: expected one element type",
    ),
    (
        lambda: Zip()(*[wide(64)] * 4, stream(2)),
        "Zip makes tuples of 257 values, those inside of others counted: expected at most 256",
    ),
    *(
        (
            lambda choice=choice: Selectors(np.array(choice), 3)(),
            f"Selectors is given an array {shape} of {dtype}: expected integers [..., k]",
        )
        for choice, shape, dtype in (([0], "[1]", "int64"), ([[0.0]], "[1, 1]", "float64"))
    ),
    *(
        (
            lambda low=low, high=high: Selectors(np.array([[low], [high]]), 3)(),
            f"Selectors names streams {low} to {high}: expected 0 to 2",
        )
        for low, high in ((-1, 2), (0, 3))
    ),
    (
        lambda: Selectors(np.array([[[0, 2], [1, 2]], [[1, 0], [1, 1]]]), 3)(),  # noqa: PLW0108 - its line is asked for
        "Selectors names stream 1 twice in row [1, 1]: expected each at most once",
    ),
    *(
        (
            lambda tiles=tiles, hits=hits: ExpertAddresses(tiles)(
                stream(2, value=SelectorType(3, hits))
            ),
            f"ExpertAddresses({tiles}) is steered by emit_1.0 [2] of selector of 3: expected at "
            "least 1 tile and one-hot selectors",
        )
        for tiles, hits in ((0, 1), (2, 2))
    ),
    (
        lambda: Streamify(shape=(2, -1), strides=(1, 1))(buffers(2, of=(3,))),
        "Streamify reads buffer [3] of 2x4 float32 with shape (2, -1): expected no dimension "
        "below 0",
    ),
    (
        lambda: Streamify(shape=(2,), strides=(-1,))(buffers(2, of=(3,))),
        "Streamify reads tiles -1 to 0 of buffer [3] of 2x4 float32: expected 0 to 2",
    ),
    (
        lambda: Streamify(shape=(2,), strides=(1,), offset=2)(buffers(2, of=(3,))),
        "Streamify reads tiles 2 to 3 of buffer [3] of 2x4 float32: expected 0 to 2",
    ),
    *(
        (
            lambda strides=strides: Streamify(offset=1, strides=strides)(buffers(2, of=(3,))),
            f"Streamify reads buffer [3] of 2x4 float32 with shape None and strides {strides}: "
            "expected both, with one stride for each dimension",
        )
        for strides in (None, (1,))
    ),
    (
        lambda: Streamify(shape=(), strides=())(buffers(2, of=(3,))),
        "Streamify reads buffer [3] of 2x4 float32 with shape () and strides (): expected both, "
        "with one stride for each dimension",
    ),
    *(
        (
            lambda shape=shape, tile=tile: LinearOffChipLoad(np.zeros(shape), tile)(),
            f"LinearOffChipLoad cuts a tensor {list(shape)} into tiles of {tile[0]}x{tile[1]}: "
            "expected tiles that divide its last two dimensions",
        )
        for shape, tile in (
            ((4,), (1, 1)),
            ((4, 4), (0, 2)),
            ((4, 4), (2, 0)),
            ((4, 4), (2, 3)),
            ((4, 4), (-2, 2)),
        )
    ),
    (
        lambda: LinearOffChipLoad(np.zeros((4, 4)), (2, 2), (2, -1), (1, 1))(),  # noqa: PLW0108 - its line is asked for
        "LinearOffChipLoad has a view of [2, -1]: expected no dimension below 0",
    ),
    *(
        (
            lambda rows=rows, view=view: LinearOffChipLoad(np.zeros((rows, 4)), (2, 2), *view)(),
            f"LinearOffChipLoad reads tiles {found} of a tensor [{rows}, 4] in tiles of 2x2 with a "
            f"view of {list(view[0])} and strides {list(view[1])}: expected {expected}",
        )
        for rows, view, found, expected in (
            (4, ((2,), (1,), 3), "3 to 4", "0 to 3"),
            (4, ((2, 3), (-1, 1), 0), "-1 to 2", "0 to 3"),
            (4, ((2, 3), (2, -1), 1), "-1 to 3", "0 to 3"),
            (0, ((1,), (1,), 0), "0 to 0", "none, since there is nothing to read"),
        )
    ),
    *(
        (
            lambda second=second: EagerMerge()([stream(2), stream(3, value=second)]),
            f"EagerMerge merges emit_1.0 [2] of 2x4 float32 and emit_2.0 [3] of {second}: expected "
            "one element type",
        )
        for second in (
            TileType(3, 4, F32),
            TileType(2, 5, F32),
            TileType(RAGGED, 5, F32),
            TileType(RAGGED, 4, F16),
            TWO,
        )
    ),
]


ACCEPTED: list[tuple[Callable[[], Stream], str]] = [
    (lambda: Expand(1)(stream(2, 1), stream(2, RAGGED)), "[2, n~] of 2x4 float32"),
    (lambda: Expand(2)(stream(1, 1), stream(2, 3)), "[2, 3] of 2x4 float32"),
    (lambda: Promote(2)(stream(2, 3)), "[1, 2, 3] of 2x4 float32"),
    (lambda: Promote(0)(stream(2, 3)), "[2, 3, 1] of 2x4 float32"),
    (lambda: Bufferize(1)(stream(2, 3)), "[2] of buffer [3] of 2x4 float32"),
    (lambda: Scan(Sum())(stream(2, 3)), "[2, 3] of 2x4 float32"),
    (lambda: Scan(RetileRow())(stream(2, 3)), "[2, 3] of 2*D_retile_row_1~x4 float32"),
    (lambda: Scan(RetileCol())(stream(2, 3)), "[2, 3] of 2x4*D_retile_col_1~ float32"),
    (
        lambda: FlatMap(SplitTiles(1, 2))(stream(2, 3, value=TileType(2, RAGGED, F32))),
        "[2, 6, D_split_tiles_1~] of 1x2 float32",
    ),
    # Where each tile has as many parts, the size that data decide is the same one.
    (
        lambda: FlatMap(SplitRows())(stream(2, 3, value=TileType(2, RAGGED, F32))),
        "[2, 6] of 1xn~ float32",
    ),
    (
        lambda: EagerMerge(2)([stream(2, 3, RAGGED), stream(4, 3, OTHER)])[0],
        "[6, 3, D_eager_merge_1_2~] of 2x4 float32",
    ),
    (
        lambda: EagerMerge(1)([stream(2, RAGGED), stream(4, RAGGED)])[0],
        "[6, n~] of 2x4 float32",
    ),
    # An inner dimension that not all of them surely have, and how many come where a selector has
    # several streams, is known to the data only.
    *(
        (
            lambda inner=inner, steered=steered: Reassemble(2)(
                [stream(2 + at, *each) for at, each in enumerate(inner)],
                stream(4, value=SelectorType(len(inner), steered)),
            ),
            f"[4, {found}] of 2x4 float32",
        )
        for inner, steered, found in (
            ([(3, 4), (3, 4)], 1, "1, 3, 4"),
            ([(3, 4), (3, 4)], 2, "2, 3, 4"),
            ([(3, 4), (3, RAGGED), (3, 4)], 1, "1, 3, D_reassemble_1_2~"),
            ([(3, RAGGED), (3, RAGGED), (3, 4)], None, "D_reassemble_1~, 3, D_reassemble_1_3~"),
            ([(RAGGED, 4), (3, 4)], 1, "1, D_reassemble_1_2~, 4"),
        )
    ),
    # Tiles of sizes that may differ are merged, of the same sizes are as they were.
    *(
        (
            lambda tiles=tiles: EagerMerge()(
                [stream(2, value=TileType(rows, cols, F32)) for rows, cols in tiles]
            )[0],
            f"[{2 * len(tiles)}] of {found} float32",
        )
        for tiles, found in (
            ([(2, 4), (2, 4), (2, 4)], "2x4"),
            ([(2, 4), (2, 4), (RAGGED, 4)], "D_eager_merge_1_rows~x4"),
            ([(2, 4), (2, OTHER)], "2xD_eager_merge_1_cols~"),
            ([(RAGGED, 4), (3, OTHER)], "D_eager_merge_1_rows~xD_eager_merge_1_cols~"),
        )
    ),
    (
        lambda: EagerMerge()(
            [stream(2, value=TupleType((TILE, TileType(rows, 4, F32)))) for rows in (RAGGED, OTHER)]
        )[0],
        "[4] of (2x4 float32, D_eager_merge_1~x4 float32)",
    ),
    (lambda: EagerMerge(1)([stream(2, 3)] * 3)[0], "[6, 3] of 2x4 float32"),
    (
        lambda: EagerMerge(1)([stream(RAGGED, 3), stream(2, 3)])[1],
        "[D_eager_merge_1] of selector of 2",
    ),
    (
        lambda: Partition(2)(stream(6), Flatten(0, 1)(Feedback(StreamType((2, 3), TWO))))[1],
        "[D_feedback[1]] of 2x4 float32",
    ),
    *(
        (
            lambda size=size, number=number: Parallelize(3)(stream(size))[number],
            f"[{left}] of 2x4 float32",
        )
        for size, number, left in ((4, 0, 2), (4, 1, 1), (4, 2, 1), (2, 2, 0), (1, 0, 1), (6, 2, 2))
    ),
    (lambda: Parallelize(1, 1)(stream(4, 3))[0], "[4, 3] of 2x4 float32"),
    (lambda: Map(PadRows(2))(stream(2)), "[2] of 2x4 float32"),
    (
        lambda: Map(PadRows(2))(stream(2, value=TileType(RAGGED, 4, F32))),
        "[2] of 2x4 float32",
    ),
    (
        lambda: Map(LeadingCols(3))(stream(2, value=TileType(2, RAGGED, F32))),
        "[2] of 2x3 float32",
    ),
    *(
        (
            lambda scores=scores, mask=mask: Map(MaskScores())(
                *(stream(2, value=TileType(rows, 4, F32)) for rows in (scores, mask))
            ),
            f"[2] of {scores}x4 float32",
        )
        for scores, mask in ((RAGGED, 2), (2, RAGGED))
    ),
    (LinearOffChipLoad(np.zeros((4, 4)), (4, 4)), "[1, 1, 1] of 4x4 bfloat16"),
    (LinearOffChipLoad(np.zeros((4, 4)), (2, 2), (2,), (1,), 2), "[1, 2] of 2x2 bfloat16"),
    (LinearOffChipLoad(np.zeros((4, 4)), (2, 2), (4,), (-1,), 3), "[1, 4] of 2x2 bfloat16"),
    (LinearOffChipLoad(np.zeros((4, 4)), (2, 2), (0,), (7,), 9), "[1, 0] of 2x2 bfloat16"),
    (Selectors(np.array([[0, 2], [1, 2]]), 3), "[1, 2] of selector of 3"),
    (Selectors(np.zeros((2, 0), int), 0), "[1, 2] of selector of 0"),
    (
        lambda: ExpertAddresses(1)(stream(2, value=SelectorType(3, 1))),
        "[2, 1, 1] of 1x1 uint64",
    ),
    (
        lambda: Streamify(shape=(3,), strides=(-1,), offset=2)(buffers(2, of=(3,))),
        "[2, 3] of 2x4 float32",
    ),
    (
        lambda: Streamify(shape=(0,), strides=(5,), offset=9)(buffers(2, of=(3,))),
        "[2, 0] of 2x4 float32",
    ),
    (lambda: Map(LeadingCols(4))(stream(2)), "[2] of 2x4 float32"),
    (lambda: Map(LeadingCols(1))(stream(2)), "[2] of 2x1 float32"),
    (
        lambda: Map(CacheWriteAddress(0))(stream(2, value=INTEGER), stream(2, value=INTEGER)),
        "[2] of 1x1 uint64",
    ),
    (
        lambda: CacheReadAddresses(0)(stream(2, value=INTEGER), stream(2, value=INTEGER)),
        "[2, D_cache_read_addresses_1~] of 1x1 uint64",
    ),
    (
        lambda: Map(MaskScores())(stream(2), stream(2, value=TileType(1, 4, F32))),
        "[2] of 2x4 float32",
    ),
    (
        lambda: Map(ScaledAdd())(stream(2), stream(2, value=TileType(1, 1, F16))),
        "[2] of 2x4 float16",
    ),
    (
        lambda: Map(ScaledAdd())(stream(2), stream(2, value=TileType(2, 4, F32))),
        "[2] of 2x4 float32",
    ),
    (
        lambda: Map(Matmul(transposed=True))(stream(2), stream(2, value=TileType(3, 4, F32))),
        "[2] of 2x3 float32",
    ),
    (
        lambda: Map(Add())(stream(2), stream(2, value=TileType(1, 1, F32))),
        "[2] of 2x4 float32",
    ),
    (
        lambda: Map(Add())(stream(2, value=TileType(1, 4, F32)), stream(2, value=COLUMN)),
        "[2] of 2x4 float32",
    ),
]
"""What fits: at the limits of what is refused above, and where data decide a size."""


@pytest.mark.parametrize(("wire", "text"), ACCEPTED)
def test_what_fits(wire: Callable[[], Stream], text: str) -> None:
    """The type of what is given."""
    with Program("accepted"):
        assert text == str(wire().type)


@pytest.mark.parametrize(("wire", "message"), REFUSED, ids=[each[1][:48] for each in REFUSED])
def test_what_does_not_fit_is_refused_where_it_is_wired(
    wire: Callable[[], object], message: str
) -> None:
    """The error is a whole sentence and points at the line of the call."""
    with Program("refused"), pytest.raises(ShapeError) as caught:
        wire()
    assert message == caught.value.message
    assert (__file__, wire.__code__.co_firstlineno) == (caught.value.file, caught.value.line)


def test_the_most_values() -> None:
    """A tuple of 256 values is an element."""
    with Program("wide"):
        assert isinstance(value := Zip()(*[wide(64)] * 4).value, TupleType)
    assert value.count == 256


@pytest.mark.parametrize(
    ("promised", "found"),
    [((8,), (9,)), ((2, 8), (2, 9)), ((3, 8), (2, 8)), ((0,), (1,)), ((8,), (1, 8))],
)
def test_feedback_of_another_shape(promised: tuple[int, ...], found: tuple[int, ...]) -> None:
    """Refused at the line that connects it, with both shapes."""
    with Program("loop"):
        loop = Feedback(StreamType(promised, FLOAT))
        stream = Emit(StreamType(found, FLOAT), [])()
        with pytest.raises(ShapeError) as error:
            loop.connect(stream)
    assert str(list(promised)) in error.value.message
    assert str(list(found)) in error.value.message
    assert (error.value.file or "").endswith("test_shape_checks.py")

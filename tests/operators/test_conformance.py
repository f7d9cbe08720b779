"""Streams of operators, stop by stop; the ids are those of the authors' test cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Program, Selector, SelectorType, Stream, StreamType, Tile, TileType, simulate
from fabric.extend import ADDRESS_DTYPE
from tests.operators.driving import FLOAT, NUMBER, Emit, encode, ragged, selector, tile
from tests.operators.writing import Input, run

FLOAT32 = np.dtype(np.float32)
NINE = "0 1 2|S1 3 4 5|S1 6 7 8|S2"
PAIRS = " ".join(f"{at % 4}{(at + 1) % 4}" for at in range(9))
RAGGED = ragged(1)


def show(value: Any) -> str:
    if isinstance(value, Selector):
        return "".join(map(str, value.hits))
    if not isinstance(value, Tile):
        return str(int(value))
    assert value.data is not None
    rows = "/".join(",".join(f"{number:g}" for number in row) for row in value.data.tolist())
    return rows if value.valid_rows == value.rows else f"{rows}:{value.valid_rows}"


def ones(text: str, *shape: Any) -> Input:
    return text, shape, FLOAT, lambda word: tile(int(word))


def integers(text: str, *shape: Any) -> Input:
    kind = TileType(1, 1, ADDRESS_DTYPE)
    return text, shape, kind, lambda word: Tile(1, 1, ADDRESS_DTYPE, np.array([[int(word)]], "u8"))


def selectors(text: str, width: int, *shape: Any, hits: int | None = None) -> Input:
    def made(word: str) -> Selector:
        return selector(width)(set() if word == "x" else set(map(int, word)))

    return text, shape, SelectorType(width, hits), made


def tiles(text: str, shape: Sequence[int], rows: int, cols: int, *valid: int) -> Input:
    def made(word: str) -> Tile:
        data = 100 * int(word) + np.arange(rows * cols, dtype=FLOAT32).reshape(rows, cols)
        return Tile(rows, cols, FLOAT32, data, valid_rows=valid[int(word)] if valid else rows)

    return text, shape, TileType(rows, cols, FLOAT32), made


def parted_and_joined(rank: int, width: int) -> Callable[[Stream, Stream], Stream]:
    return lambda data, chosen: op.Reassemble(rank)(op.Partition(width, rank)(data, chosen), chosen)


def buffered(rank: int = 1, *arguments: Any) -> Callable[..., Stream]:
    return lambda source, *guide: op.Streamify(*arguments)(op.Bufferize(rank)(source), *guide)


def joined(rank: int) -> Callable[..., Stream]:
    return lambda left, right, chosen: op.Reassemble(rank)([left, right], chosen)


CASES: dict[str, tuple[Any, list[Input], list[str]]] = {
    "A1": (op.Accum(op.RetileCol()), [tiles("0 1|S1", (1, 2), 2, 2)], ["0,1,100,101/2,3,102,103"]),
    "A2": (
        op.Accum(op.RetileRow()), [tiles("0 1|S1 2 3|S2", (1, 2, 2), 1, 2)],
        ["0,1/100,101 200,201/300,301|S1"],
    ),
    "A3": (
        op.Accum(op.MatmulSum(), 2), [ones("1 2|S1 3|S1 4|S2 5|S3", 1, 2, 2, 2)] * 2, ["30 25|S1"]
    ),
    "A4": (op.Accum(op.RetileRow()), [tiles("0 1|S1", (1, 2), 1, 1, 1, 0)], ["0/100:1"]),
    "F1": (
        op.FlatMap(op.SplitRows()), [tiles("0 1|S1", (1, 2), 2, 2)], ["0,1 2,3 100,101 102,103|S1"]
    ),
    "F2": (
        op.FlatMap(op.SplitCols()), [tiles("0 1|S1", (1, 2), 2, 2)], ["0,2 1,3 100,102 101,103|S1"]
    ),
    "F3": (
        op.FlatMap(op.SplitRows(valid_only=True)), [tiles("0 1|S1", (1, 2), 2, 2, 2, 1)],
        ["0,1 2,3 100,101|S1"],
    ),
    # The authors' simulator emits all rows of a tile without valid rows.
    "F4": (
        op.FlatMap(op.SplitRows(valid_only=True)), [tiles("0 1|S1", (1, 2), 2, 2, 1, 0)],
        ["0,1 -0|S1"],
    ),
    "F5": (op.FlatMap(op.SplitTiles(1, 1)), [tiles("0|S1", (1, 1), 2, 0)], ["-0|S1 -0|S2"]),
    "G1": (
        op.ExpertAddresses(3), [selectors("2 1 7", 8, 3, hits=1)],
        ["6|S1 7|S1 8|S2 3|S1 4|S1 5|S2 21|S1 22|S1 23|S2"],
    ),
    "G2": (
        op.CacheReadAddresses(16), [integers("0 3 11", 3), integers("2 4 3", 3)],
        ["0 1|S1 48 49 50 51|S1 176 177 178|S1"],
    ),
    "G3": (op.FilterLastTile(), [integers("2 4 1", 3)], ["1 0|S1 1 1 1 0|S1 0|S1"]),
    "G4": (op.Metadata(np.array([5, 0, 7])), [], ["5 0 7|S1"]),
    "G5": (
        op.Selectors(np.array([[[0, 2], [1, 0]], [[2, 1], [0, 1]]]), 3), [], ["02 01|S1 12 01|S2"]
    ),
    # The authors' simulator writes the next tile.
    "G6": (op.Map(op.CacheWriteAddress(16)), [integers("3", 1), integers("4", 1)], ["51"]),
    "G7": (op.Accum(op.SignalAllRead()), [ones("0 1|S1 0 1|S2", 1, 2, 2)], ["1 1|S1"]),
    "S2": (op.Flatten(0, 1), [("0|S1 1|S2 2|S1 3|S3", (1, 2, 2, 1))], ["0 1|S1 2 3|S2"]),
    "S2, empty": (op.Flatten(0, 1), [("-1|S2 0|S3", (1, 2, 2, 2))], ["-0|S1 0|S2"]),
    "S4": (op.Promote(2), [("0 1|S1 2 3|S2", (1, 2, 2))], ["0 1|S1 2 3|S3"]),
    "S4, outermost": (op.Promote(), [("0 1|S1 2 3|S1", (2, 2))], ["0 1|S1 2 3|S2"]),
    "S5": (op.Promote(0), [("0 1 2|S1", (1, 3))], ["0|S1 1|S1 2|S2"]),
    "S6": (op.Promote(0), [("0 1", (2,))], ["0|S1 1|S1"]),
    "S8": (
        op.Reshape(4, pad=0.0), [ones("0 1 2 3 4", 5)],
        ["0 1 2 3|S1 4 0:0 0:0 0:0|S1", "0 0 0 0|S1 0 1 1 1|S1"],
    ),
    "S9": (
        op.Reshape(3, pad=0.0, outermost=True), [ones("0 1 2 3", 4)],
        ["0 1 2|S1 3 0:0 0:0|S2", "0 0 0|S1 0 1 1|S2"],
    ),
    # The last chunk is sent when the stream has ended.
    "S10": (
        op.Reshape(2, pad=0.0, outermost=True), [ones("0 1 2 3", 4)],
        ["0 1|S1 2 3|S2", "0 0|S1 0 0|S2"],
    ),
    "S12": (
        op.Reshape(2, 1), [ones("0 1|S1 2 3|S1 4 5|S1 6 7|S2", 1, 4, 2)],
        ["0 1|S1 2 3|S2 4 5|S1 6 7|S3", "0 0|S1 0 0|S2 0 0|S1 0 0|S3"],
    ),
    "S13": (op.Repeat(3), [("0 1|S1", (1, 2))], ["0 0 0|S1 1 1 1|S2"]),
    "S14": (op.Expand(1), [("1", (1,)), ("5 6 7", (3,))], ["1 1 1"]),
    "S15": (
        op.Expand(2), [("1|S2 2|S3", (1, 2, 1, 1)), ("0 0|S1 0 0|S2 0 0|S1 0 0|S3", (1, 2, 2, 2))],
        ["1 1|S1 1 1|S2 2 2|S1 2 2|S3"],
    ),
    "P1": (
        op.Partition(4, 1), [(NINE, (1, 3, 3)), selectors("01 12 23|S1", 4, 1, 3)],
        ["0 1 2|S1", "0 1 2|S1 3 4 5|S1", "3 4 5|S1 6 7 8|S1", "6 7 8|S1"],
    ),
    "P2": (
        op.Partition(4), [("0 1 2 3 4 5 6 7 8|S1", (1, 9)), selectors(f"{PAIRS}|S1", 4, 1, 9)],
        ["0 3 4 7 8", "0 1 4 5 8", "1 2 5 6", "2 3 6 7"],
    ),
    "P3": (
        lambda chosen: op.Partition(4)(chosen, chosen),
        [selectors("0 1 2|S1 1 1 2|S2", 4, 1, 2, 3)],
        ["0", "1 1 1", "2 2", ""],
    ),
    "R1": (
        parted_and_joined(1, 4), [(NINE, (1, 3, 3)), selectors("01 12 23|S1", 4, 1, 3)],
        ["0 1 2|S1 0 1 2|S2 3 4 5|S1 3 4 5|S2 6 7 8|S1 6 7 8|S3"],
    ),
    "R2": (
        parted_and_joined(0, 4), [("0 1 2", (3,)), selectors("01 12 23", 4, 3)],
        ["0 0|S1 1 1|S1 2 2|S1"],
    ),
    "R, rank 0": (
        joined(0),
        [("7 8", (RAGGED,)), ("9", (RAGGED,)), selectors("0|S1 -0|S1 01|S2", 2, 1, 3, RAGGED)],
        ["7|S2 -1|S2 8 9|S3"],
    ),
    "R, rank 1": (
        joined(1),
        [("7|S1", (RAGGED, 1)), ("9|S1", (RAGGED, 1)),
         selectors("0|S1 x|S1 1|S2", 2, 1, 3, RAGGED)],
        ["7|S3 -1|S3 9|S4"],
    ),
    "R, rank 2": (
        joined(2),
        [("7|S2", (RAGGED, 1, 1)), ("", (RAGGED, 1, 1)),
         selectors("0|S1 -0|S2", 2, 1, 3, RAGGED)],
        ["7|S4 -3|S5"],
    ),
    "P, no hits": (op.Partition(2), [("1 2", (2,)), selectors("x 1", 2, 2)], ["", "2"]),
    "L2": (op.Parallelize(2, 1), [("1|S1 2|S1 3|S1", (3, 1))], ["1|S1 3|S1", "2|S1"]),
    "L3": (op.Parallelize(4), [("1 2 3 4 5 6", (6,))], ["1 5", "2 6", "3", "4"]),
    "B2": (
        buffered(2, (2,)), [ones("0 1|S1 2 3|S3", 1, 1, 2, 2)],
        ["0 1|S1 2 3|S2 0 1|S1 2 3|S4"],
    ),
    # The authors' simulator adds further repeats.
    "B4": (buffered(1, (2, 2)), [ones("7 8|S1", 1, 2)], ["7 8|S1 7 8|S2 7 8|S1 7 8|S3"]),
    "B5": (buffered(), [ones("7 8|S1", 1, 2), ("0 0|S1", (1, 2))], ["7 8|S1 7 8|S2"]),
    "B, columns twice": (
        buffered(2, (), (3, 2, 2), (1, 0, 3)), [ones("0 1 2|S1 3 4 5|S2", 1, 2, 3)],
        ["0 3|S1 0 3|S2 1 4|S1 1 4|S2 2 5|S1 2 5|S3"],
    ),
    "O4": (
        op.LinearOffChipLoad(np.arange(4).reshape(2, 2), (1, 1)), [("0 0|S1", (1, 2))],
        ["0 1|S1 2 3|S2 0 1|S1 2 3|S3"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operator_sends_the_stream_of_the_reference(case: str) -> None:
    wire, inputs, expected = CASES[case]
    report, found = run(wire, *inputs, show=show)
    assert (report.status, found) == ("completed", expected)


def _emitted(parts: Any, gaps: Sequence[int]) -> Stream:
    kind = StreamType((len(parts), len(parts[0]) if parts else 1), NUMBER)
    return Emit(kind, encode(parts, 2), gaps)()


@pytest.mark.parametrize(
    ("late", "expected"), [(0, "71|S1 70|S2"), (7, "70|S1 71|S2"), (None, "70|S1 71|S2")]
)
def test_reassemble_passes_the_earliest_stream_first_and_the_lowest_of_equals(
    late: int | None, expected: str
) -> None:
    def wire(chosen: Stream) -> Stream:
        parts = {0: [[70]], 7: [[71]]}
        streams = [_emitted(parts.get(port, []), (50 if port == late else 3,)) for port in range(8)]
        return op.Reassemble(1)(streams, chosen)

    assert [expected] == run(wire, selectors("07", 8, 1))[1]


@pytest.mark.parametrize("shape", [(8, 16), (2, 4, 16), (2, 2, 2, 2, 8), (128,)])
def test_stored_output_has_the_stated_shape_in_both_modes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)

    def stored(shape: tuple[int, ...] | None, before: op.Tensor) -> Program:
        with Program("shapes") as program:
            op.LinearOffChipStore("linear", shape)(op.LinearOffChipLoad(x, (4, 8))())
            data = op.Flatten(0, 1)(op.LinearOffChipLoad(x, (4, 8))())
            op.RandomOffChipStore("random", before, (4, 8))(op.Metadata(np.arange(4))(), data)
        return program

    before = op.Tensor(shape, np.zeros(shape, np.float32)).viewed((8, 16))
    program = stored(shape, before)
    whole, timed = simulate(program, mode="functional"), simulate(program, mode="timing")
    for name in ("linear", "random"):
        found = np.asarray(whole.outputs[name])
        assert found.shape == timed.outputs[name].shape == shape
        assert found.tolist() == x.astype(found.dtype).reshape(shape).tolist()
    plain = simulate(stored(None, op.Tensor.of(np.zeros((8, 16)))), mode="timing")
    assert plain.outputs["linear"].shape == (8, 16)
    assert (plain.cycles, plain.hbm) == (timed.cycles, timed.hbm)

"""The edit distance of pairs of sequences of any length, by wavefronts in a loop.

The distances between all beginnings of two sequences form a table. A wavefront is an antidiagonal
of this table, and follows from the two wavefronts before it. Each lap of the loop computes a
wavefront, so a pair needs one lap per symbol of both sequences. Up to ``lanes`` pairs are in the
loop at a time, and the next pair starts when a pair is done. Tickets control the starts:
``Initial`` emits ``lanes`` tickets, and every finished pair emits another. With padded sequences,
all pairs have the symbols and the laps of the longest ones.

Limits of STeP's operators: the length of the loop's stream must be known, so all laps are counted
before the run. No operator turns the number of the lap into the selector that lets a pair out of
the loop, so the program defines its own functions. A tile in a loop keeps its type, so a wavefront
has its greatest width in every lap.

Run:      python -m fabric run programs/edit_distance.py -p pairs=8 -p longest=12
Computes: y[p] = the fewest insertions, deletions and substitutions that turn a[p] into b[p]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from layers.sequences import Letters, distance, draw_pairs, read_pairs
from numpy.typing import NDArray

from fabric import (
    Dim,
    Feedback,
    Initial,
    Program,
    Selector,
    SelectorType,
    Stream,
    StreamType,
    Tile,
    TileType,
    TupleType,
)
from fabric.extend import ADDRESS_DTYPE, Bounds, number_in
from operators import (
    Accum,
    CacheReadAddresses,
    Consumer,
    EagerMerge,
    Flatten,
    Function,
    Map,
    Metadata,
    Partition,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    RetileCol,
    Selectors,
)
from operators.rtl import description

FAR = 2**30  # distances outside of the table


@dataclass(frozen=True)
class Begin(Function):
    """Make the first wavefront of a pair, with the distance between two empty beginnings."""

    mixed_types: ClassVar = True
    fixed_cycles: ClassVar = 1

    def infer(
        self, left: TileType, right: TileType, laps: TileType, number: TileType, ticket: TileType
    ) -> TupleType:
        fronts = TileType(2, left.cols + 1, left.dtype)
        return TupleType((left, right, fronts, laps, laps, number))

    def apply(
        self, left: Tile, right: Tile, laps: Tile, number: Tile, ticket: Tile
    ) -> tuple[Tile, ...]:
        data = None
        if left.data is not None:
            data = np.full((2, left.cols + 1), FAR, left.dtype)
            data[0, 0] = 0
        fronts = Tile(2, left.cols + 1, left.dtype, data)
        return left, right, fronts, _integer(0), laps, number

    def hardware(self) -> description.Function:
        return description.Function(5, lambda x, *_: (2, x.cols + 1, 2, x.cols + 1))


@dataclass(frozen=True)
class NextFront(Function):
    """Compute the next wavefront, in five operations per distance."""

    mixed_types: ClassVar = True

    def infer(self, *inputs: TileType) -> TupleType:
        return TupleType(inputs)

    def flops(self, *inputs: Any) -> Dim:
        return 5 * inputs[2].cols

    def apply(self, *inputs: Tile) -> tuple[Tile, ...]:
        left, right, fronts, lap, laps, number = inputs
        done, a, b, data = number_in(lap) + 1, left.data, right.data, fronts.data
        if a is not None and b is not None and data is not None and done <= _letters(a, b):
            data = _next(a[0], b[0], data, done)
        fronts = Tile(2, fronts.cols, fronts.dtype, data)
        return left, right, fronts, _integer(done), laps, number

    def hardware(self) -> description.Function:
        return description.Function(1, description.whole, lambda x: x.cols * 5)


@dataclass(frozen=True)
class IsDone(Function):
    """Select 1 if a pair has finished its laps, otherwise 0."""

    mixed_types: ClassVar = True
    fixed_cycles: ClassVar = 1

    def infer(self, *inputs: TileType) -> SelectorType:
        return SelectorType(2, hits=1)

    def apply(self, *inputs: Tile) -> Selector:
        *_, lap, laps, _ = inputs
        return Selector((int(number_in(lap) == number_in(laps)),), 2)

    def hardware(self) -> description.Function:
        return description.Function(1, lambda _: description.NUMBER, is_told=True)


@dataclass(frozen=True)
class Distance(Function):
    """Read the distance of a pair: column n of its last wavefront, for n symbols of the left."""

    mixed_types: ClassVar = True
    fixed_cycles: ClassVar = 1

    def infer(self, *inputs: TileType) -> TileType:
        return TileType(1, 1, inputs[0].dtype)

    def apply(self, *inputs: Tile) -> Tile:
        left, _, fronts, *_ = inputs
        data = None
        if left.data is not None and fronts.data is not None:
            end = _letters(left.data)
            data = fronts.data[:1, end : end + 1]
        return Tile(1, 1, fronts.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(1, lambda _: description.NUMBER)


@dataclass(frozen=True)
class Number(Function):
    mixed_types: ClassVar = True
    fixed_cycles: ClassVar = 1

    def infer(self, *inputs: TileType) -> TileType:
        return inputs[-1]

    def apply(self, *inputs: Tile) -> Tile:
        return inputs[-1]

    def hardware(self) -> description.Function:
        return description.Function(1, lambda _: description.NUMBER, is_told=True)


def build(
    pairs: Annotated[int, Bounds(1)] = 8,
    longest: Annotated[int, Bounds(0)] = 12,
    sequences: Literal["ragged", "padded"] = "ragged",
    lanes: Annotated[int, Bounds(1)] = 4,
    piece: Annotated[int, Bounds(1)] = 4,
    file: Path | None = None,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the program.

    Args:
        pairs: the number of random pairs.
        longest: the most symbols of a random sequence.
        sequences: ``ragged``, or ``padded`` to the longest.
        lanes: pairs in the loop at a time.
        piece: symbols that are loaded at a time. A sequence takes whole pieces.
        file: a file with a pair per line, and a comma between the two words; random pairs if None.
        seed: for random pairs.
    """
    words = draw_pairs(pairs, longest, seed) if file is None else read_pairs(file)
    count, lanes = len(words), min(lanes, len(words))
    lengths = np.array([[len(left), len(right)] for left, right in words])
    most = int(lengths.max())
    if sequences == "padded":
        lengths[:] = most
    laps = np.maximum(lengths.sum(axis=1), 1)
    rounds = int(laps.sum()) - count  # laps after the first of each pair

    with Program("edit-distance", mode="functional", channel_depth=max(2, lanes)) as program:
        numbers = Flatten(0, 1)(Metadata(np.arange(count))())  # [P]
        left, right = (
            _load([pair[side] for pair in words], lengths[:, side], piece, most, -1 - side)
            for side in (0, 1)
        )  # [P] of 1 x symbols
        leaving = Feedback(StreamType((count - lanes,), numbers.value))
        tickets = Initial(0, lanes)(leaving)  # [P]
        times = Flatten(0, 1)(Metadata(laps)())
        begun = Map(Begin())(left, right, times, numbers, tickets)  # [P]
        again = Feedback(StreamType((rounds,), begun.value))
        inside, _ = EagerMerge()([begun, again])  # [all laps]
        after = Map(NextFront())(inside)
        going, done = Partition(2)(after, Map(IsDone())(after))
        again.connect(_first(going, rounds))
        places = Map(Number())(done)
        # The last finished pairs start no other pairs.
        useful, spare = Partition(2)(places, _which(np.arange(count) >= count - lanes))
        Consumer()(spare)
        leaving.connect(_first(useful, count - lanes))
        RandomOffChipStore("y", np.zeros((count, 1), np.int32), tile=(1, 1))(
            places, Map(Distance())(done)
        )

    program.expect(y=lambda: np.array([[distance(*pair)] for pair in words]))
    return program


def _load(
    sequences: Sequence[Letters], lengths: NDArray[np.int64], piece: int, most: int, empty: int
) -> Stream:
    """Return one tile for each sequence, filled up with ``empty`` to whole pieces."""
    stride = max(-(-most // piece), 1)
    stored = np.full((len(sequences), stride * piece), empty, np.int32)
    for row, letters in zip(stored, sequences, strict=True):
        row[: len(letters)] = letters
    numbers, pieces = Metadata(np.arange(len(sequences)))(), Metadata(-(-lengths // piece))()
    places = CacheReadAddresses(stride)(numbers, pieces)  # [1, P, n~]
    loaded = RandomOffChipLoad(stored, tile=(1, piece))(places)  # [1, P, n~] of 1 x piece
    return Flatten(0, 1)(Accum(RetileCol())(loaded))  # [P] of 1 x (n~ * piece)


def _first(stream: Stream, count: int) -> Stream:
    """Return the first ``count`` elements. A loop can end, because their number is known."""
    return Flatten(0, 1)(Reassemble()([stream], _which(np.zeros(count), 1)))


def _which(choice: NDArray[Any], width: int = 2) -> Stream:
    return Flatten(0, 1)(Selectors(choice.astype(int)[:, np.newaxis], width)())


def _integer(number: int) -> Tile:
    return Tile(1, 1, ADDRESS_DTYPE, np.array([[number]], ADDRESS_DTYPE))


def _letters(*sequences: NDArray[Any]) -> int:
    return sum(int((each >= 0).sum()) for each in sequences)


def _next(
    left: NDArray[Any], right: NDArray[Any], fronts: NDArray[Any], lap: int
) -> NDArray[np.int32]:
    """Return wavefront ``lap`` and the one before it. Column i is for i symbols of the left."""
    latest, before = fronts
    front = np.full_like(latest, FAR)
    for taken in range(max(0, lap - len(right)), min(lap, len(left)) + 1):
        other = lap - taken
        if not taken or not other:
            front[taken] = lap
            continue
        changed = before[taken - 1] + (left[taken - 1] != right[other - 1])
        front[taken] = min(changed, latest[taken - 1] + 1, latest[taken] + 1)
    return np.stack([front, latest])

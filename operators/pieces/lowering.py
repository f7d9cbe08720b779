"""From a program of tiles to one of physical pieces, as the paper's hardware is built.

A product reads its first operand row by row and its second as whole tiles, each from a buffer that
gives it as often as it is needed; where the first one is computed it is the one that is buffered as
a whole. Sums go over pieces and then over tiles, in a buffer that is as large as the result.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final, NamedTuple, NoReturn

from fabric import (
    Dim,
    Feedback,
    Hop,
    Program,
    ProgramError,
    Stream,
    StreamType,
    TileType,
    hardware_scope,
    is_static,
)
from operators.accum import Accum
from operators.functions import MatmulSum
from operators.linear_off_chip_load import LinearOffChipLoad
from operators.linear_off_chip_store import LinearOffChipStore
from operators.map import Map
from operators.pieces.buffers import MOST_PIECES, PIECES_OF_A_SET, ReadPieces, TokenPieces
from operators.pieces.units import (
    AccumPieces,
    BigTile,
    BroadcastPieces,
    LoadPieces,
    MapPieces,
    RepeatPieces,
    StorePieces,
)
from operators.reshape import Reshape

__all__ = ["in_pieces"]

LINK_DEPTH: Final = 4
"""Of two FIFOs of two slots with a register's move between them."""

LINK: Final = Hop(2, 2)
DIRECT_DEPTH: Final = 2

def in_pieces(program: Program, rows: int, cols: int) -> Program:
    """Return ``program`` with each tile in pieces of ``rows`` x ``cols``; it runs in timing mode.

    Raises:
        ProgramError: pieces that are no squares, an operator or a tile that cannot be lowered.
    """
    if rows != cols or rows < 1:
        raise ProgramError(f"pieces of {rows}x{cols}: expected squares, as in 16x16")
    with hardware_scope(program.hardware):
        lowered = Program(program.name, channel_depth=LINK_DEPTH)
    with lowered:
        _Lowering(program, lowered, rows).lower()
    return lowered


class _Grid(NamedTuple):
    """A stream of pieces: ``outer`` dimensions of tiles, each of ``tile`` pieces."""

    stream: Stream
    outer: tuple[int, ...]
    tile: tuple[int, int]


class _Lowering:
    """What has been lowered so far."""

    def __init__(self, program: Program, lowered: Program, size: int) -> None:
        self._program: Final = program
        self._lowered: Final = lowered
        self._size: Final = size
        self._done: Final[dict[Stream, _Grid]] = {}
        self._loads: Final[dict[Stream, LinearOffChipLoad]] = {}
        self._branches: Final[dict[Stream, list[Stream]]] = {}
        self._readers = Counter(
            stream.resolve() for node in program.nodes for stream in node.inputs
        )

    def lower(self) -> None:
        """Lower all operators, in the order of wiring."""
        for node in self._program.nodes:
            self._node = node
            operator, inputs = node.operator, [each.resolve() for each in node.inputs]
            types = [each.type for each in (*node.inputs, *node.outputs)]
            if type(operator) is LinearOffChipLoad and not inputs:
                self._loads[node.outputs[0]] = operator
            elif type(operator) is Accum and operator.rank == 1 and len(inputs) == 2:
                if type(operator.reduction) is not MatmulSum:
                    self._refuse(f"{type(operator.reduction).__name__}", "MatmulSum")
                left, right = inputs
                self._done[node.outputs[0]] = self._product(
                    left, right, types, transposed=operator.reduction.transposed
                )
            elif type(operator) is Map:
                self._done[node.outputs[0]] = self._map(operator, inputs)
            elif (
                type(operator) is Reshape
                and operator.chunk == 1
                and not self._readers[node.outputs[1]]
            ):
                self._done[node.outputs[0]] = self._promote(operator, inputs[0], types[1])
            elif type(operator) is LinearOffChipStore and operator.shape is None:
                self._store(operator, inputs[0])
            else:
                self._refuse(
                    f"{type(operator).__name__}",
                    "LinearOffChipLoad without a reference, LinearOffChipStore, Map, "
                    "Accum(MatmulSum()) of two streams, or Reshape with chunk=1",
                )

    def _refuse(self, found: str, expected: str) -> NoReturn:
        place = self._node.place
        raise ProgramError(
            f"{self._node.name}: {found} cannot be lowered to pieces: expected {expected}",
            file=place.file,
            line=place.line,
        )

    def _tile(self, kind: StreamType) -> tuple[tuple[int, ...], tuple[int, int], TileType]:
        """Return a stream's shape, its tiles in pieces, and the piece."""
        tile, size = kind.value, self._size
        if not isinstance(tile, TileType):
            self._refuse(f"a stream of {tile}", "tiles")
        sizes = (*kind.shape, tile.rows, tile.cols)
        if not all(map(is_static, sizes)):
            self._refuse(f"{kind}", "static shapes and tiles")
        *shape, rows, cols = (int(str(each)) for each in sizes)
        if rows % size or cols % size:
            self._refuse(f"a tile of {rows}x{cols}", f"tiles that {size}x{size} divides")
        return tuple(shape), (rows // size, cols // size), TileType(size, size, tile.dtype)

    def _one(self, operator: MapPieces | AccumPieces, *inputs: Stream) -> Stream:
        return self._link(operator(*inputs))[0]

    def _link(
        self, outputs: tuple[Stream, ...], *, direct: tuple[int, ...] = ()
    ) -> tuple[Stream, ...]:
        """Let the inputs of the latest node be links, those in ``direct`` one FIFO."""
        node = self._lowered.nodes[-1]
        for number in range(len(node.inputs)):
            key = f"{node.name}.{number}"
            if number in direct:
                self._lowered.depths[key] = DIRECT_DEPTH
            else:
                self._lowered.hops[key] = LINK
        return outputs

    def _read(self, stream: Stream, grid: tuple[int, ...], piece: TileType) -> Stream:
        """Return the pieces of a load in this order, a branch of its own for each reader."""
        if stream not in self._branches:
            (pieces,) = LoadPieces((grid,), piece, self._loads[stream].tensor)()
            count = self._readers[stream]
            if count > 1:
                copies = BroadcastPieces((grid,) * count, piece)(pieces)
                self._branches[stream] = [*self._link(copies, direct=(0,))]
            else:
                self._branches[stream] = [pieces]
        found = self._branches[stream].pop(0)
        if tuple(found.type.shape) != grid:
            self._refuse("a load that is read in two orders", "one order of pieces")
        return found

    def _buffered(self, pieces: Stream, rank: int, times: int | None) -> Stream:
        """Return ``pieces`` from a buffer whose tokens have ``rank`` dimensions."""
        shape: tuple[Dim, ...] = tuple(pieces.type.shape)
        piece = pieces.type.value
        assert isinstance(piece, TileType)
        inner = tuple(int(str(each)) for each in shape[len(shape) - rank :])
        count = math.prod(inner)
        if count > MOST_PIECES:
            self._refuse(f"a buffer of {count} pieces", f"at most {MOST_PIECES}")
        outer = shape[: len(shape) - rank]
        count_of_tokens = math.prod(int(str(each)) for each in outer)
        sets = (count_of_tokens, -(-count // PIECES_OF_A_SET))
        freed = Feedback(StreamType(sets, piece))
        tokens = TokenPieces((outer,), piece, inner)(pieces, freed)
        node = self._lowered.nodes[-1]
        self._lowered.hops[f"{node.name}.0"] = LINK
        self._lowered.depths[f"{node.name}.1"] = 2 * MOST_PIECES
        if times is not None:
            outer = (*outer, times)
            tokens = self._link(RepeatPieces((outer,), piece, times)(*tokens))
        read = ReadPieces(((*outer, *inner), sets), piece, inner, times or 1)
        result, again = self._link(read(*tokens))
        freed.connect(again)
        return result

    def _product(
        self, left: Stream, right: Stream, types: list[StreamType], *, transposed: bool
    ) -> _Grid:
        shape, (rows, inner), piece = self._tile(types[0])
        _, by, _ = self._tile(types[1])
        cols = by[0] if transposed else by[1]
        computed = left not in self._loads
        if right not in self._loads:
            self._refuse("a product with a second operand that is computed", "one that is loaded")
        if computed:
            first = self._buffered(self._read(right, (*shape, cols, inner), piece), 1, rows)
            second = self._buffered(self._done[left].stream, 2, cols)
            tile = (cols, rows)
        else:
            first = self._buffered(self._read(left, (*shape, rows, inner), piece), 1, cols)
            second = self._buffered(self._read(right, (*shape, cols, inner), piece), 2, rows)
            tile = (rows, cols)
        product = MapPieces(((*shape, *tile, inner),), piece, flops=2 * self._size**3)
        pieces = self._one(product, first, second)
        sums = self._one(AccumPieces(((*shape, *tile),), piece), pieces)
        partial = Feedback(StreamType((*shape, *tile), piece))
        outer = shape[:-1]
        around, total = self._link(
            BigTile(((*shape, *tile), (*outer, *tile)), piece)(sums, partial)
        )
        partial.connect(self._buffered(around, 2, None))
        return _Grid(total, outer, tile)

    def _taken(self, stream: Stream) -> _Grid:
        """Return what one operator reads of a stream that was computed."""
        if stream not in self._done:
            self._refuse("a load in front of it", "a stream that is computed")
        if self._readers[stream] > 1:
            self._refuse(f"{stream}, which has several readers,", "one reader")
        return self._done[stream]

    def _map(self, operator: Map, inputs: list[Stream]) -> _Grid:
        grids = [self._taken(each) for each in inputs]
        pieces = [each.stream.type.value for each in grids]
        piece = pieces[0]
        assert isinstance(piece, TileType)
        flops = operator.function.flops(*pieces)
        if not isinstance(flops, int) or operator.function.infer(*pieces) != pieces[0]:
            self._refuse(type(operator.function).__name__, "an elementwise function")
        unit = MapPieces((tuple(grids[0].stream.type.shape),), piece, flops=flops)
        return grids[0]._replace(stream=self._one(unit, *(each.stream for each in grids)))

    def _promote(self, operator: Reshape, source: Stream, after: StreamType) -> _Grid:
        grid = self._taken(source)
        shape, tile, piece = self._tile(after)
        unit = MapPieces(((*shape, *grid.tile),), piece, promoted=operator.dimension + 2)
        return _Grid(self._one(unit, grid.stream), shape, tile)

    def _store(self, operator: LinearOffChipStore, source: Stream) -> None:
        grid = self._taken(source)
        piece = grid.stream.type.value
        assert isinstance(piece, TileType)
        StorePieces((), piece, operator.output)(grid.stream)
        self._link((), direct=(0,))

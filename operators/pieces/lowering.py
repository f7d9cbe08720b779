"""Lower a program of tiles to a program of physical pieces, as in the paper's hardware.

A product reads rows of pieces of its first operand and whole tiles of its second, from buffers that
repeat them as often as needed. If the first operand is computed, it is buffered as whole tiles, and
the second one row by row. Pieces are summed first, then tiles, in a buffer of the result's size.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

import numpy as np
from typing_extensions import override

from fabric import (
    Feedback,
    Hop,
    Program,
    ProgramError,
    Stream,
    StreamType,
    Tile,
    TileType,
    hardware_scope,
)
from fabric.extend import Costs, OffChipTensor, Operator, Ports, Wiring, is_static, row_bytes
from operators.accum import Accum
from operators.functions.matmul import Matmul, MatmulSum
from operators.map import Map
from operators.off_chip_load import LinearOffChipLoad
from operators.off_chip_store import LinearOffChipStore
from operators.pieces.units import (
    FREED,
    MOST_PIECES,
    PIECES_OF_A_SET,
    AccumPieces,
    BigTile,
    BroadcastPieces,
    MapPieces,
    Pieces,
    PromotePieces,
    ReadPieces,
    RepeatPieces,
    TokenPieces,
    token_type,
)
from operators.shape import Reshape
from operators.streams.reading import Types, tile_of
from operators.tiles.grid import Grid, positions
from operators.tiles.tensor import Tensor

LINK_DEPTH: Final = 4
"""Slots of a link, which is two FIFOs of two slots with a register between them."""

LINK: Final = Hop(2, 2)
DIRECT_DEPTH: Final = 2


def in_pieces(program: Program, rows: int, cols: int) -> Program:
    """Return ``program`` with each tile in pieces of ``rows`` x ``cols`` numbers, as in hardware.

    The name of an operator is the original operator's name and a part, as in
    ``matmul_sum_1_product``.

    Raises:
        ProgramError: the pieces are not squares, or an operator or a tile cannot be lowered.
    """
    if rows != cols or rows < 1:
        raise ProgramError(f"pieces of {rows}x{cols}: expected squares, as in 16x16")
    with hardware_scope(program.hardware):
        lowered = Program(program.name, mode=program.mode, channel_depth=LINK_DEPTH)
    with lowered:
        _Lowering(program, lowered, rows).lower()
    lowered.expected.update(program.expected)
    lowered.token_count = program.token_count
    lowered.stands_for_runs = program.stands_for_runs
    return lowered


class _Grid(NamedTuple):
    """A stream of tiles in pieces: ``outer`` is its shape, ``tile`` the pieces down and across.

    With ``by_columns``, the pieces of a tile come column by column.
    """

    stream: Stream
    outer: tuple[int, ...]
    tile: tuple[int, int]
    by_columns: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.outer, *self.tile)

    @property
    def piece(self) -> TileType:
        return tile_of(self.stream)


class _Lowering:
    def __init__(self, program: Program, lowered: Program, size: int) -> None:
        self._program: Final = program
        self._lowered: Final = lowered
        self._size: Final = size
        self._done: Final[dict[Stream, _Grid]] = {}
        self._loads: Final[dict[Stream, int]] = {}
        self._at = 0
        self._names: Final = {node.name for node in program.nodes}
        self._branches: Final[dict[Stream, list[_Grid]]] = {}
        self._readers = Counter(
            stream.resolve() for node in program.nodes for stream in node.inputs
        )

    def lower(self) -> None:
        for at, node in enumerate(self._program.nodes):
            self._at = at
            operator, inputs = node.operator, [stream.resolve() for stream in node.inputs]
            types = [stream.type for stream in (*node.inputs, *node.outputs)]
            if type(operator) is LinearOffChipLoad and not inputs:
                self._loads[node.outputs[0]] = self._at
            elif type(operator) is Accum and operator.rank == 1 and len(inputs) == 2:
                if type(operator.reduction) is not MatmulSum:
                    self._refuse(f"{type(operator.reduction).__name__}", "MatmulSum")
                left, right = inputs
                self._done[node.outputs[0]] = self._product(left, right, types, operator.reduction)
            elif type(operator) is Map:
                self._done[node.outputs[0]] = self._map(operator, inputs)
            elif (
                type(operator) is Reshape
                and operator.chunk == 1
                and not self._readers[node.outputs[1]]
            ):
                self._done[node.outputs[0]] = self._promote(operator, inputs[0], types[1])
            elif type(operator) is LinearOffChipStore:
                self._store(operator, inputs[0])
            else:
                self._refuse(
                    f"{type(operator).__name__}",
                    "LinearOffChipLoad without a reference, LinearOffChipStore, Map, "
                    "Accum(MatmulSum()) of two streams, or Reshape with chunk=1",
                )

    def _refuse(self, found: str, expected: str) -> NoReturn:
        node = self._program.nodes[self._at]
        raise ProgramError(
            f"{node.name}: {found} cannot be lowered to pieces: expected {expected}",
            file=node.place.file,
            line=node.place.line,
        )

    def _tile(self, kind: StreamType) -> tuple[tuple[int, ...], tuple[int, int], TileType]:
        """Return the shape of a stream, the size of its tiles in pieces, and the piece's type."""
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

    def _add(
        self,
        part: str,
        operator: Operator,
        *inputs: Stream,
        direct: Mapping[int, int] = MappingProxyType({}),
    ) -> tuple[Stream, ...]:
        """Add an operator for ``part`` of the current one.

        Inputs in ``direct`` are single FIFOs with the given depths. All other inputs are links.
        """
        node = self._program.nodes[self._at]
        name = f"{node.name}_{part}" if part else node.name
        with self._lowered.names.numbering(self._names - {name if not part else ""}):
            outputs = self._lowered.add(replace(operator, name=name), inputs, node.place)
        for number in range(len(inputs)):
            key = f"{self._lowered.nodes[-1].name}.{number}"
            if number in direct:
                self._lowered.depths[key] = direct[number]
            else:
                self._lowered.hops[key] = LINK
        return outputs

    def _read(
        self, stream: Stream, grid: tuple[int, ...], piece: TileType, *, by_columns: bool
    ) -> Stream:
        """Return the pieces of a load, row by row or column by column; each reader has a copy."""
        if stream not in self._branches:
            reader, self._at = self._at, self._loads[stream]
            load = self._program.nodes[self._at].operator
            assert isinstance(load, LinearOffChipLoad)
            streams = self._add("", LoadPieces((grid,), piece, load, by_columns))
            count = self._readers[stream]
            if count > 1:
                copies = BroadcastPieces((grid,) * count, piece)
                streams = self._add("copies", copies, *streams, direct={0: DIRECT_DEPTH})
            self._at = reader
            self._branches[stream] = [
                _Grid(each, grid[:-2], (grid[-2], grid[-1]), by_columns) for each in streams
            ]
        branch = self._branches[stream].pop(0)
        if branch.shape != grid or branch.by_columns != by_columns:
            self._refuse("a load that is read in two orders", "one order of pieces")
        return branch.stream

    def _buffered(self, part: str, pieces: Stream, rank: int, times: int | None) -> Stream:
        """Buffer groups of ``rank`` dimensions of ``pieces``; return each group ``times`` times."""
        shape = tuple(int(str(each)) for each in pieces.type.shape)
        outer, inner, piece = shape[:-rank], shape[-rank:], tile_of(pieces)
        count = math.prod(inner)
        if count > MOST_PIECES:
            self._refuse(f"a buffer of {count} pieces", f"at most {MOST_PIECES}")
        sets = (math.prod(outer), -(-count // PIECES_OF_A_SET))
        freed = Feedback(StreamType(sets, FREED))
        store = TokenPieces((outer,), piece, inner)
        tokens = self._add(f"{part}_store", store, pieces, freed, direct={1: 2 * MOST_PIECES})
        if times is not None:
            outer = (*outer, times)
            repeat = RepeatPieces((outer,), token_type(piece, inner), times)
            tokens = self._add(f"{part}_repeat", repeat, *tokens)
        read = ReadPieces(((*outer, *inner), sets), piece, inner, times or 1)
        result, again = self._add(f"{part}_read", read, *tokens)
        freed.connect(again)
        return result

    def _product(
        self, left: Stream, right: Stream, types: list[StreamType], reduction: MatmulSum
    ) -> _Grid:
        shape, (rows, inner), piece = self._tile(types[0])
        transposed = reduction.transposed
        _, by, by_piece = self._tile(types[1])
        cols = by[0] if transposed else by[1]
        computed = left not in self._loads
        if right not in self._loads:
            self._refuse("a product with a second operand that is computed", "one that is loaded")
        other = self._read(right, (*shape, cols, inner), by_piece, by_columns=not transposed)
        if computed:
            grid = self._taken(left, types[0])
            if grid.by_columns:
                self._refuse("a first operand in columns of pieces", "rows of pieces")
            first = self._buffered("right", other, 1, rows)
            second = self._buffered("left", grid.stream, 2, cols)
            tile = (cols, rows)
        else:
            own = self._read(left, (*shape, rows, inner), piece, by_columns=False)
            first = self._buffered("left", own, 1, cols)
            second = self._buffered("right", other, 2, rows)
            tile = (rows, cols)
        multiply = Matmul(transposed=transposed, unrounded=True)
        wide = multiply.infer(piece, by_piece)
        grids = (*shape, *tile, inner), (*shape, *tile), (*shape[:-1], *tile)
        product = MapPieces(
            grids[:1], wide, flops=2 * self._size**3, function=multiply, swapped=computed
        )
        pieces = self._add("product", product, first, second)
        sums = self._add("sum", AccumPieces(grids[1:2], wide), *pieces)
        partial = Feedback(StreamType(grids[1], wide))
        kind = self._tile(types[2])[2]
        around, total = self._add("total", BigTile(grids[1:], wide, total=kind), *sums, partial)
        partial.connect(self._buffered("partial", around, 2, None))
        return _Grid(total, shape[:-1], tile, by_columns=computed)

    def _taken(self, stream: Stream, kind: StreamType) -> _Grid:
        """Return the pieces of a stream for one operator; a load is read row by row."""
        if stream in self._loads:
            shape, tile, piece = self._tile(kind)
            pieces = self._read(stream, (*shape, *tile), piece, by_columns=False)
            return _Grid(pieces, shape, tile)
        if self._readers[stream] > 1:
            self._refuse(f"{stream}, which has several readers,", "one reader")
        return self._done[stream]

    def _map(self, operator: Map, inputs: list[Stream]) -> _Grid:
        grids = [self._taken(each, each.type) for each in inputs]
        first, pieces = grids[0], [grid.piece for grid in grids]
        function = operator.function
        flops = function.flops(*pieces)
        if not isinstance(flops, int) or not function.elementwise:
            self._refuse(type(function).__name__, "an elementwise function")
        if any(grid._replace(stream=first.stream) != first for grid in grids):
            self._refuse("operands in different orders of pieces", "one order")
        result = function.infer(*pieces)
        assert isinstance(result, TileType)
        unit = MapPieces((first.shape,), result, flops=flops, function=function)
        (stream,) = self._add("", unit, *(grid.stream for grid in grids))
        return first._replace(stream=stream)

    def _promote(self, operator: Reshape, source: Stream, after: StreamType) -> _Grid:
        grid = self._taken(source, source.type)
        shape, tile, _ = self._tile(after)
        tile = tile[::-1] if grid.by_columns else tile
        unit = PromotePieces(((*shape, *tile),), grid.piece, operator.dimension + 2)
        (stream,) = self._add("", unit, grid.stream)
        return grid._replace(stream=stream, outer=shape)

    def _store(self, operator: LinearOffChipStore, source: Stream) -> None:
        grid = self._taken(source, source.type)
        store = StorePieces((), grid.piece, operator.output, grid.by_columns, operator.shape)
        self._add("", store, grid.stream, direct={0: DIRECT_DEPTH})


@dataclass(frozen=True)
class LoadPieces(Pieces):
    """Reads the tiles of ``load`` piece by piece, with ``by_columns`` column by column."""

    conducted = True
    kind = "memory"
    off_chip = "read"

    load: LinearOffChipLoad
    by_columns: bool = False

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        (pieces,) = outputs
        return Costs(load_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor:
        tile = self.tile()
        size = tile.rows * tile.cols  # pieces are consecutive in memory
        shape = outputs[0].count, size
        return OffChipTensor(shape, tile.dtype, source=self, tile=(1, size))

    @override
    async def run(self, ports: Ports) -> None:
        (sizes,) = self.shapes
        tile, unit, sink = self.tile(), ports.unit, ports.sink
        size = tile.rows * row_bytes(tile.cols, tile.dtype)
        ports.announce(1, size, range(math.prod(sizes)))
        grid = Grid("LoadPieces", Tensor.of(self.load.tensor), (tile.rows, tile.cols))
        pieces, numbers = grid.tiles(ports), self._numbers(tile.rows, sizes[-2:])
        for place, (_, stop, _) in enumerate(positions(sizes)):
            await sink.reserve()
            await ports.burst(1, size, place)
            if ports.functional:
                tile = self.tile(pieces[next(numbers)].data)
            sink.put((tile, min(stop, len(sizes) - 1)))
            unit.charge(1)

    def _numbers(self, size: int, inner: tuple[int, ...]) -> Iterator[int]:
        """Yield for each sent piece its number in the tensor, in row-major order."""
        load = self.load
        width = Tensor.of(load.tensor).shape[-1] // size
        high, wide = load.tile[0] // size, load.tile[1] // size
        for number, _, _ in load.view:
            assert number is not None
            row, col = divmod(number, width // wide)
            for place in np.ndindex(*inner):
                down, right = reversed(place) if self.by_columns else place
                yield (row * high + down) * width + col * wide + right


@dataclass(frozen=True)
class StorePieces(Pieces):
    """Writes pieces; takes a piece when the memory has the requests of all pieces before it.

    ``shape`` is the shape of the stored tensor; None for the matrix of a LinearOffChipStore.
    """

    conducted = True
    kind = "memory"
    off_chip = "write"

    output: str
    by_columns: bool
    shape: tuple[int, ...] | None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        wiring.store(self.output)
        return ()

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        (pieces,) = inputs
        return Costs(store_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(self, inputs: Types, outputs: Types) -> OffChipTensor:
        tile = self.tile()
        size = tile.rows * tile.cols
        shape = inputs[0].count, size
        return OffChipTensor(shape, tile.dtype, output=self.output, tile=(1, size))

    @override
    async def run(self, ports: Ports) -> None:
        unit, number = ports.unit, 0
        stored: list[np.ndarray] = []
        top = len(ports.input_types[0].shape) - 1
        while (element := await ports.source.receive()) is not None:
            tile, stop = element
            assert isinstance(tile, Tile)
            size = tile.rows * row_bytes(tile.cols, tile.dtype)
            if tile.data is not None:
                stored.append(tile.data)
            if stop >= top:
                unit.off_chip_bytes += size  # the run ends when the last piece has been taken
                continue
            unit.charge(1)
            await ports.burst(1, size, number)
            number += 1
        if ports.functional:
            ports.stored[self.output] = self._tensor(ports.input_types[0], stored)

    def _tensor(self, source: StreamType, stored: list[np.ndarray]) -> np.ndarray:
        sizes = [int(str(size)) for size in source.shape]
        outer, width = math.prod(sizes[:-3]), sizes[-3]
        rows, cols = stored[0].shape
        pieces = np.stack(stored).reshape(outer, width, *sizes[-2:], rows, cols)
        if self.by_columns:
            pieces = pieces.swapaxes(2, 3)
        high, wide = pieces.shape[2:4]
        matrix = pieces.transpose(0, 2, 4, 1, 3, 5).reshape(outer * high * rows, -1)
        assert matrix.shape[1] == width * wide * cols
        return matrix if self.shape is None else matrix.reshape(self.shape)

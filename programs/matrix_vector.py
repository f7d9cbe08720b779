"""Vectors times matrices, each vector times a chosen matrix, in static and in dynamic tiles.

A mixture of experts with a small batch, or adapters that requests share, do little else: every
matrix is read for a few vectors. With static tiling, a tile has ``tile_n`` vectors, and the last
tile of a matrix is padded. With dynamic tiling, a tile has all vectors of a matrix. ``skew``, the
exponent of a power law, is how unevenly matrices are chosen.

Hardware may have to carry the size of a dynamic tile with it. Then every vector and every result in
off-chip memory begins with a header of ``header_bytes``. After every operator that sends dynamic
tiles, a stage delays each tile until its header has passed, at the bytes per cycle of on-chip
memory. Static tiles have no headers. Each row in memory has a header, since the paper's loads and
stores move only static tiles (table 3), from which dynamic tiles are packed.

Limits: A channel moves a tile of any size in one cycle, so a header costs relatively more than on
wires that take time for every byte. A stage adds a hop and two slots, even with ``header_bytes=0``.
``header_bytes=None`` adds no stages. Area, energy, and the use of sizes in units are not counted.

Run:      python -m fabric run programs/matrix_vector.py -p batch=16 -p tiling=dynamic
Computes: y[b] = x[b] @ w[matrix of b]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from layers.experts import pack, pack_dynamically
from numpy.typing import NDArray

from fabric import ConfigurationError, Hardware, Program, Stream, Tile, TileType, dtype_named
from fabric.extend import Bounds, ceil_div
from operators import (
    Accum,
    FlatMap,
    Flatten,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Partition,
    Reassemble,
    Repeat,
    RetileCol,
    Selectors,
    SplitRows,
    Tensor,
)

STEEPEST = 16  # the largest skew: nearly all vectors are for one matrix


@dataclass(frozen=True)
class Header(Function):
    """Delay a tile by the cycles of its header."""

    operands: ClassVar = 1

    held_cycles: int

    @property
    def fixed_cycles(self) -> int:
        return self.held_cycles

    def infer(self, tile: TileType) -> TileType:
        return tile

    def apply(self, tile: Tile) -> Tile:
        return tile


@dataclass(frozen=True)
class Columns(Function):
    """Add columns of zeros in front of a row, or remove columns there, without cycles.

    Attributes:
        more: the number of added columns; negative for removed columns.
    """

    operands: ClassVar = 1
    fixed_cycles: ClassVar = 0

    more: int

    def infer(self, row: TileType) -> TileType:
        return TileType(row.rows, row.cols + self.more, row.dtype)

    def apply(self, row: Tile) -> Tile:
        data = row.data
        if data is not None:
            data = (
                data[:, -self.more :] if self.more < 0 else np.pad(data, ((0, 0), (self.more, 0)))
            )
        return Tile(row.rows, row.cols + self.more, row.dtype, data, in_memory=row.in_memory)


def build(
    batch: Annotated[int, Bounds(1)] = 16,
    matrices: Annotated[int, Bounds(1)] = 8,
    skew: float = 1.0,
    tiling: Literal["static", "dynamic"] = "static",
    tile_n: Annotated[int, Bounds(1)] = 16,
    tile_f: int = 64,
    inner: Annotated[int, Bounds(1)] = 256,
    outer: Annotated[int, Bounds(1)] = 256,
    header_bytes: int | None = None,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the products.

    Args:
        batch: the number of vectors.
        matrices: the number of matrices. Each vector is multiplied by one.
        skew: the n-th most popular matrix is chosen n ** -skew times as often as the first.
        tiling: ``static`` or ``dynamic``.
        tile_n: vectors of a tile; for static tiling only.
        tile_f: columns of a matrix that are read at a time; it divides ``outer``.
        inner: rows of a matrix.
        outer: columns of a matrix.
        header_bytes: bytes of the header with the size of a dynamic tile; None for no headers.
        seed: for the choice of matrices and all numbers.
    """
    if not 0 <= skew <= STEEPEST:
        raise ConfigurationError(f"skew is {skew}: expected a number from 0 to {STEEPEST}")
    if tile_f < 1 or outer % tile_f:
        raise ConfigurationError(f"tile_f is {tile_f}: expected a divisor of outer, {outer}")
    choice = _draw(batch, matrices, skew, seed)
    # Only functional mode draws the numbers.
    vectors = partial(_normal, seed, matrices, batch, inner)

    def matrix(number: int) -> NDArray[np.float64]:
        return _normal(seed, number, inner, outer)

    with Program("matrix-vector", mode="functional", channel_depth=max(2, batch)) as program:
        headers = _Headers.of(header_bytes if tiling == "dynamic" else None, program.hardware)
        columns = headers.columns
        width = columns + inner
        x = Tensor((batch, width), lambda: np.pad(vectors(), ((0, 0), (columns, 0))))
        rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, width))())  # [B] of 1 x width
        rows = headers.changed(rows, -columns)  # [B] of 1 x inner
        route = Flatten(0, 1)(Selectors(choice[:, np.newaxis], matrices)())  # [B] of one-hot
        routed = Partition(matrices, name="route")(rows, route)  # per matrix [D_i] of 1 x inner
        packed = pack(routed, tile_n) if tiling == "static" else pack_dynamically(routed)
        done = []
        for number, (tiles, own) in enumerate(zip(packed, routed, strict=True)):
            delayed = headers.behind(tiles)  # [n_i] of N x inner
            w = Tensor((inner, outer), partial(matrix, number))
            loaded = LinearOffChipLoad(w, tile=(inner, tile_f))(delayed)  # [n_i, 1, J]
            repeated = headers.behind(Repeat(outer // tile_f)(delayed))  # [n_i, J] of N x inner
            products = Map(Matmul())(repeated, Flatten(0, 1)(loaded))  # [n_i, J] of N x tile_f
            products = headers.behind(products)
            results = headers.behind(Accum(RetileCol())(products))  # [n_i] of N x outer
            rows_of = FlatMap(SplitRows(valid_only=True))(results)
            done.append(rows_of.assume(*own.shape))  # [D_i] of 1 x outer
        y = Reassemble()(done, route)  # [B, 1] of 1 x outer
        LinearOffChipStore("y")(headers.changed(y, columns))

    def reference() -> NDArray[np.float64]:
        result, x = np.zeros((batch, columns + outer)), vectors()
        for number in np.unique(choice).tolist():
            result[choice == number, columns:] = x[choice == number] @ matrix(number)
        return result

    program.expect(y=reference)
    for own, count in zip(routed, np.bincount(choice, minlength=matrices).tolist(), strict=True):
        program.bind(own.shape[0], count)
    return program


@dataclass(frozen=True)
class _Headers:
    """Headers of dynamic tiles.

    Attributes:
        held_cycles: cycles in which a header passes; None without headers.
        columns: columns that a header takes in a row in off-chip memory.
    """

    held_cycles: int | None
    columns: int

    @classmethod
    def of(cls, header_bytes: int | None, hardware: Hardware) -> _Headers:
        if header_bytes is None:
            return cls(None, 0)
        dtype = hardware.tile.dtype
        itemsize = dtype_named(dtype).itemsize
        if header_bytes < 0 or header_bytes % itemsize:
            raise ConfigurationError(
                f"header_bytes is {header_bytes}: expected a multiple of {itemsize}, the bytes of "
                f"one {dtype}"
            )
        return cls(
            ceil_div(header_bytes, hardware.on_chip.bytes_per_cycle), header_bytes // itemsize
        )

    def behind(self, tiles: Stream) -> Stream:
        """Delay dynamic tiles until their headers have passed."""
        return tiles if self.held_cycles is None else Map(Header(self.held_cycles))(tiles)

    def changed(self, rows: Stream, columns: int) -> Stream:
        """Return rows with ``columns`` more columns; fewer if it is negative."""
        return rows if self.held_cycles is None else Map(Columns(columns))(rows)


def _draw(batch: int, matrices: int, skew: float, seed: int) -> NDArray[np.int64]:
    random = np.random.default_rng((seed, 0))
    chances = (1.0 + np.arange(matrices)) ** -skew
    return random.choice(random.permutation(matrices), batch, p=chances / chances.sum())


def _normal(seed: int, part: int, rows: int, cols: int) -> NDArray[np.float64]:
    random = np.random.default_rng((seed, 1, part))
    result: NDArray[np.float64] = random.standard_normal((rows, cols)) / np.sqrt(rows)
    return result

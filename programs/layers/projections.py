"""Products of all rows with weights that are loaded once, tile by tile.

B rows; D columns of a token; C columns of the weights.
"""

from __future__ import annotations

from fabric import Stream, TileType
from operators import (
    Accum,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    Map,
    Matmul,
    MatmulSum,
    Repeat,
    RetileCol,
    SplitTiles,
    Tensor,
)


def streamed(
    name: str, weights: Tensor, reference: Stream, tile: tuple[int, int] | None = None
) -> Stream:
    """Load ``weights``, whole or in tiles, for each element of the reference: [n] to [n, tiles]."""
    rows, cols = weights.shape
    tile = (rows, cols) if tile is None else tile
    tiles = LinearOffChipLoad(weights, tile, name=name)(reference)  # [n, down, across]
    return Flatten(0, 1)(tiles)


def project(name: str, rows: Stream, weights: Tensor, columns: int) -> Stream:
    """Multiply by [D, C], ``columns`` at a time, from [1] of BxD to [1] of BxC."""
    inner, whole = weights.shape
    repeated = Repeat(whole // columns)(rows)  # [1, C / columns] of BxD
    tiles = streamed(f"{name}_load", weights, rows, (inner, columns))
    parts = Map(Matmul(), name=name)(repeated, tiles)  # [1, C / columns] of B x columns
    return Accum(RetileCol(), name=f"{name}_join")(parts)


def project_back(name: str, rows: Stream, weights: Tensor, columns: int) -> Stream:
    """Multiply by [C, D], with sums over ``columns`` at a time, from [1] of BxC to [1] of BxD."""
    _, hidden = weights.shape
    tile = rows.value
    assert isinstance(tile, TileType)
    # [1, C / columns] of B x columns
    parts = FlatMap(SplitTiles(tile.rows, columns))(rows)
    tiles = streamed(f"{name}_load", weights, rows, (columns, hidden))
    return Accum(MatmulSum(), name=name)(parts, tiles)

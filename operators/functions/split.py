"""Functions that turn one element into several, for FlatMap."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, Wiring, same

__all__ = ["Split", "SplitRows"]


@dataclass(frozen=True)
class Split:
    """A function from one tile to a rank-0 stream of tiles; no cycles.

    A FlatMap concatenates what it returns for every element.
    """

    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[Dim, TileType]:
        """Return how many tiles come of ``count`` tiles in all, and their type.

        Raises:
            ShapeError: the tile cannot be split so.
        """
        raise NotImplementedError

    def apply(self, tile: Tile) -> list[Tile]:
        """Return the parts in order."""
        raise NotImplementedError


@dataclass(frozen=True)
class SplitRows(Split):
    """Split a tile into its rows.

    Attributes:
        valid_only: drop rows that are padding.
            How many are left is known to the data only.
    """

    valid_only: bool = False

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[Dim, TileType]:
        row = TileType(1, tile.cols, tile.dtype)
        if self.valid_only:
            return wiring.symbol(f"D_{wiring.node_name}"), row
        if same(tile.rows, 0):
            raise ShapeError(f"SplitRows splits {tile}: expected rows")
        return count * tile.rows, row

    @override
    def apply(self, tile: Tile) -> list[Tile]:
        rows = tile.valid_rows if self.valid_only else tile.rows
        return [
            Tile(
                1,
                tile.cols,
                tile.dtype,
                None if tile.data is None else tile.data[row : row + 1],
                in_memory=tile.in_memory,
                valid_rows=int(row < tile.valid_rows),
                valid_cols=tile.valid_cols,
            )
            for row in range(rows)
        ]

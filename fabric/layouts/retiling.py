"""Tiles cut into smaller ones: which parts two layouts are both made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fabric.arguments.described import checked, refuse
from fabric.layouts.layout import Layout
from fabric.layouts.loops import Loop
from fabric.telling.errors import ShapeError

__all__ = ["common_tile", "in_parts"]


@checked
def common_tile(left: Layout, right: Layout) -> tuple[int, ...]:
    """Return the largest tile that those of both layouts can be cut into, in places of one grid.

    Args:
        left: a layout.
        right: another one of a tensor of the same shape.

    Raises:
        ShapeError: the shapes differ; or no grid of rows and columns cuts the tiles so.
    """
    if left.shape != right.shape:
        refuse(f"({left}) is of another tensor than ({right}): expected the same shape", ShapeError)
    tile = tuple(map(math.gcd, _grid(left), _grid(right)))
    for layout in (left, right):
        if not _cuts(layout.tile, tile):
            refuse(
                f"({left}) and ({right}) have tiles of {tile} in common: "
                "expected parts that are rows and columns of both tiles",
                ShapeError,
            )
    return tile


def _grid(layout: Layout) -> tuple[int, ...]:
    """Return the parts that the tiles of a layout are made of, each at a multiple of its size."""
    sizes = list(map(math.gcd, layout.tile, layout.start))
    for loop in layout.loops:
        if loop.dim is not None and loop.trips > 1:
            sizes[loop.dim] = math.gcd(sizes[loop.dim], loop.step)
    return tuple(sizes)


def _cuts(whole: Sequence[int], part: Sequence[int]) -> bool:
    """Whether the rows of each part, in all dimensions but the last, are rows without a gap."""
    rows, wanted = whole[:-1], part[:-1]
    first = next((dim for dim, size in enumerate(wanted) if size > 1), len(wanted))
    return tuple(rows[first + 1 :]) == tuple(wanted[first + 1 :])


@checked
def in_parts(layout: Layout, tile: tuple[int, ...]) -> Layout:
    """Return the layout of the same stream when each tile is cut into parts, row by row.

    Args:
        layout: of the tiles as they are.
        tile: of the parts; it divides the tile.

    Raises:
        ShapeError: it does not.
    """
    if len(tile) != len(layout.tile) or any(
        part < 1 or size % part for size, part in zip(layout.tile, tile, strict=True)
    ):
        refuse(f"in_parts: tile is {tile}: expected a part of the tile of ({layout})", ShapeError)
    loops = [
        Loop(size // part, part, dim)
        for dim, (size, part) in enumerate(zip(layout.tile, tile, strict=True))
        if size != part
    ]
    return layout.nested((*layout.loops, *loops), tile)

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

    Its rows are neighbours in the tiles of both. So it is one place wide along a dimension where a
    tile is not whole along one that lies further inside: in tiles of two tokens of two requests
    the tokens of one request are no neighbours.

    Args:
        left: a layout.
        right: another one of a tensor of the same shape.

    Raises:
        ShapeError: the shapes differ.
    """
    if left.shape != right.shape:
        refuse(f"({left}) is of another tensor than ({right}): expected the same shape", ShapeError)
    tile = tuple(map(math.gcd, _grid(left), _grid(right)))
    for outer in range(len(tile)):
        part = (1,) * outer + tile[outer:]
        if _cuts(left.tile, part) and _cuts(right.tile, part):
            return part
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

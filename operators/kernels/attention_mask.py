"""Which keys the queries of attention see, tile by tile, as far as it is known while planning.

A tile of keys that no query of a tile sees is not read; a tile that all of them see takes no mask.
The others take a tile of the mask, and equal ones are one tile in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = ["Heads", "Mask", "Part", "Visits", "causal", "visits"]


@dataclass(frozen=True)
class Heads:
    """Attention in tiles.

    Attributes:
        batch: requests.
        key_heads: heads of keys and values.
        group: query heads that share one of them; their queries are one tile.
        queries: of each head.
        rows: queries of each head in a tile.
        columns: keys in a tile.
    """

    batch: int
    key_heads: int
    group: int
    queries: int
    rows: int
    columns: int

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return self.key_heads * self.group

    @property
    def query_tiles(self) -> int:
        """Tiles of queries of each head."""
        return self.queries // self.rows

    @property
    def tasks(self) -> int:
        """One for each request, each of its tiles of queries and each key head."""
        return self.batch * self.query_tiles * self.key_heads


@dataclass(frozen=True)
class Part:
    """Keys that come one behind the other from one place.

    Attributes:
        count: keys.
        rows: of them in a tile; the last one may have fewer.
        knows_rows: a tile with fewer says so (valid rows); else the mask has to.
    """

    count: int
    rows: int
    knows_rows: bool

    @property
    def tiles(self) -> int:
        """How many there are."""
        return -(-self.count // self.rows)


@dataclass(frozen=True)
class Mask:
    """Booleans, true where a query sees a key, or a bias of its scores.

    Attributes:
        shape: [batch, heads, queries, keys], each 1 where it is the same for all.
        array: the data, of that shape.
        known: they are there while planning, and decide what is read.
    """

    shape: tuple[int, int, int, int]
    array: Callable[[], NDArray[np.generic]]
    dtype: np.dtype
    known: bool = True


@dataclass(frozen=True)
class Visits:
    """What each task reads.

    Attributes:
        tiles: of each task the key tiles that it sees, numbered through all parts.
        masks: of each of these the tile of ``table`` that it takes; -1 where it takes none.
        count, rows: of the tiles of the table.
        dtype: of its elements.
        table: [count * rows, columns].
    """

    tiles: tuple[tuple[int, ...], ...]
    masks: tuple[tuple[int, ...], ...]
    count: int
    rows: int
    dtype: np.dtype
    table: Callable[[], NDArray[np.generic]]


def causal(queries: int, keys: int) -> Mask:
    """Return the mask of ``is_causal``: query i sees the keys up to key i."""
    array = np.tri(queries, keys, dtype=bool)[None, None]
    return Mask((1, 1, queries, keys), lambda: array, array.dtype)


def visits(heads: Heads, parts: tuple[Part, ...], mask: Mask | None) -> Visits:
    """Return which tiles of keys each task reads, and with which mask.

    Args:
        heads: the tiles.
        parts: the keys, in the order of the mask's last dimension.
        mask: None where every query sees every key.
    """
    total = sum(part.count for part in parts)
    if mask is None:
        mask = Mask((1, 1, 1, total), lambda: np.ones((1, 1, 1, total), np.bool_), np.dtype(bool))
    tiled = _Tiled(heads, parts, mask)
    everything = (heads.batch, heads.query_tiles, heads.key_heads, tiled.tiles)
    if mask.known:
        seen, partly = tiled.seen_and_partly(tiled.cut(mask.array()))
    else:
        seen = partly = np.ones(tiled.shape, np.bool_)
    places = np.flatnonzero(seen & partly)
    first = places
    if mask.known and len(places):
        flat = tiled.cut(mask.array()).reshape(seen.size, -1)[places]
        _, chosen, which = np.unique(_bytes(flat), return_index=True, return_inverse=True)
        order = np.argsort(chosen)  # in the order in which they are met first
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, which = places[chosen[order]], rank[which.reshape(-1)]
    else:
        which = np.arange(len(places))
    numbers = np.full(seen.size, -1, np.int64)
    numbers[places] = which
    all_seen = np.broadcast_to(seen, everything).reshape(heads.tasks, tiled.tiles)
    all_numbers = np.broadcast_to(numbers.reshape(seen.shape), everything).reshape(all_seen.shape)

    def table() -> NDArray[np.generic]:
        chosen = tiled.cut(mask.array()).reshape(seen.size, tiled.rows, heads.columns)[first]
        return np.ascontiguousarray(chosen.reshape(-1, heads.columns))

    return Visits(
        tuple(tuple(np.flatnonzero(row).tolist()) for row in all_seen),
        tuple(tuple(row[of].tolist()) for row, of in zip(all_numbers, all_seen, strict=True)),
        len(first),
        tiled.rows,
        mask.dtype,
        table,
    )


class _Tiled:
    """A mask cut into tiles: [batch, query tiles, key heads, key tiles, rows, columns]."""

    def __init__(self, heads: Heads, parts: tuple[Part, ...], mask: Mask) -> None:
        self._heads, self._parts = heads, parts
        self._hidden = False if mask.dtype.kind == "b" else -np.inf
        batch, many_heads, queries, _ = mask.shape
        self._per_head = many_heads > 1
        self._per_query = queries > 1
        # Rows of one query tile of all heads that share keys; one row where they are all equal.
        self._group = heads.group if self._per_head else 1
        self._query_rows = heads.rows if self._per_query or self._per_head else 1
        self.rows = self._group * self._query_rows
        self.tiles = sum(part.tiles for part in parts)
        self.shape = (
            batch,
            heads.query_tiles if self._per_query else 1,
            heads.key_heads if self._per_head else 1,
            self.tiles,
        )

    def cut(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the tiles of a mask; what is behind the keys of a part is hidden."""
        first, pieces = 0, []
        for part in self._parts:
            keys = array[..., first : first + part.count]
            first += part.count
            room = part.tiles * part.rows - part.count
            keys = self._padded(keys, room)
            keys = keys.reshape(*keys.shape[:-1], part.tiles, part.rows)
            pieces.append(self._padded(keys, self._heads.columns - part.rows))
        columns = self._heads.columns
        whole = np.concatenate(pieces, axis=-2)  # [batch, heads, queries, key tiles, columns]
        batch, key_tiles = whole.shape[0], self.tiles
        query_tiles, key_heads = self.shape[1:3]
        if self._per_head and not self._per_query:
            rows = np.broadcast_to(whole, (*whole.shape[:2], self._query_rows, key_tiles, columns))
        else:
            rows = whole
        split = rows.reshape(
            batch, key_heads, self._group, query_tiles, self._query_rows, key_tiles, columns
        )
        tiles = split.transpose(0, 3, 1, 5, 2, 4, 6)
        return tiles.reshape(*self.shape, self.rows, columns)

    def seen_and_partly(
        self, tiles: NDArray[np.generic]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which tiles are seen by any query, and which take a mask."""
        needs = np.zeros((self.tiles, self._heads.columns), np.bool_)
        place = 0
        for part in self._parts:
            for tile in range(part.tiles):
                there = min(part.rows, part.count - tile * part.rows)
                needs[place, : there if part.knows_rows else self._heads.columns] = True
                place += 1
        needs = needs[:, None]
        if tiles.dtype.kind == "b":
            visible = tiles.astype(np.bool_)
            partly = np.logical_and(~visible, needs)
            return np.asarray(visible.any(axis=(-2, -1))), np.asarray(partly.any(axis=(-2, -1)))
        bias = tiles.astype(np.float64)
        # A bias so low leaves nothing of a score beside the row's largest one.
        largest = bias.max(axis=(-3, -1), keepdims=True)
        low = largest + float(vars(ml_dtypes)["finfo"](tiles.dtype).min) / 2
        with np.errstate(invalid="ignore"):
            seen = ~(np.isneginf(bias) | (bias < low)).all(axis=(-2, -1))
        return np.asarray(seen), np.asarray(((bias != 0) & needs).any(axis=(-2, -1)))

    def _padded(self, array: NDArray[np.generic], columns: int) -> NDArray[np.generic]:
        if not columns:
            return array
        widths = [(0, 0)] * (array.ndim - 1) + [(0, columns)]
        return np.pad(array, widths, constant_values=self._hidden)


def _bytes(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return each row as one value, so that rows can be compared."""
    whole = np.ascontiguousarray(rows)
    width = math.prod(whole.shape[1:]) * whole.dtype.itemsize
    return whole.view(np.uint8).reshape(len(whole), width).view(np.dtype((np.void, width)))[:, 0]

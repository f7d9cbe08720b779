"""Keys and values for attention: the tiles that its tasks see, in order.

If the mask is known while planning, a task (a tile of queries of the heads that share keys) does
not read tiles of keys that none of its queries sees. It does not mask tiles that all see. Equal
tiles of the mask are stored once.
Seen tiles in off-chip memory are loaded by addresses. Keys that a kernel computes arrive as a
whole, once for each tile of queries, and a Partition drops the unseen tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fabric import Dim, Layout, Stream
from fabric.extend import dtype_name
from operators.functions.choosing import OneHot
from operators.functions.row_functions import PadRows
from operators.kernels.tensors import Computed, Stored, View
from operators.map import Map
from operators.off_chip_load import RandomOffChipLoad
from operators.partition import Partition
from operators.reassemble import Reassemble
from operators.shape import Flatten
from operators.sources import Consumer, Metadata, RaggedIntegers, Selectors
from operators.streams.reading import tile_of
from operators.tiles.tensor import Tensor

Lists = Sequence[Sequence[int]]
"""For each task a list of numbers."""

Sizes = list[tuple[Dim, Fraction]]
"""The sizes of dimensions that known data decide; for a ragged dimension the mean."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Keys or values from one source.

    Attributes:
        view: [batch, heads, keys, columns].
        step: the number of equal neighbouring heads; only the first one is read.
    """

    view: View
    step: int
    part: Part

    @property
    def columns(self) -> int:
        return self.view.shape[-1]

    @property
    def is_computed(self) -> bool:
        return isinstance(self.view.source, Computed)

    def layout(self, heads: Heads) -> Layout:
        """Return the order in which all tasks read a kernel's result, once per tile of queries."""
        rows = self.part.rows
        return Layout(
            self.view.shape,
            (1, 1, rows, self.columns),
            trips=(heads.batch, heads.query_tiles, heads.key_heads, self.part.tiles),
            steps=(1, 1, self.step, rows),
            map=(0, None, 1, 2),
        )

    def tensor(self, heads: Heads) -> Tensor:
        """Return the tensor in memory: the rows of each head, padded to whole tiles."""
        view, step, part, source = self.view, self.step, self.part, self.view.source
        assert isinstance(source, Stored)
        room = part.tiles * part.rows - part.count
        count = heads.batch * heads.key_heads * part.tiles * part.rows

        def made() -> np.ndarray:
            rows = view.array()[:, ::step]
            whole = np.pad(rows, [(0, 0), (0, 0), (0, room), (0, 0)]) if room else rows
            return whole.reshape(count, self.columns)

        data = made if source.tensor.has_data else None
        return Tensor((count, self.columns), data, dtype=dtype_name(source.dtype))


def integers(lists: Lists, sizes: Sizes) -> Stream:
    """Return numbers as [1, tasks, n], n ragged unless all lists are equally long."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Metadata(np.array(lists, np.int64))()
    return _ragged(lists, sizes)


def selectors(lists: Lists, width: int, sizes: Sizes) -> Stream:
    """Return one-hot selectors as [1, tasks, n], n ragged unless all lists are equally long."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Selectors(np.array(lists, np.int64)[..., None], width)()
    return Map(OneHot(width))(_ragged(lists, sizes))


def dealt(streams: Sequence[Stream], numbers: np.ndarray) -> Sizes:
    """Return the size of each output ``streams`` of a Partition with the selectors ``numbers``."""
    counts = np.bincount(numbers.reshape(-1), minlength=len(streams)).tolist()
    return [(each.shape[0], Fraction(n)) for each, n in zip(streams, counts, strict=True)]


def _ragged(lists: Lists, sizes: Sizes) -> Stream:
    result = RaggedIntegers(lists)()
    sizes.append((result.shape[-1], Fraction(sum(map(len, lists)), len(lists))))
    return result


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the keys or values that some tasks see.

    Attributes:
        name: the prefix of the operators' names.
        tiles: for each task the seen tiles; the numbers continue from source to source.
        sizes: a list to which the reader adds the sizes of ragged dimensions.
    """

    name: str
    heads: Heads
    tasks: Sequence[int]
    tiles: Lists
    sizes: Sizes

    def read(self, rows: Sequence[Rows], streams: Sequence[Stream | None]) -> Stream:
        """Return the tiles that the tasks see, [1, tasks, n].

        ``streams`` has the tiles of each computed source, [1, tasks, tiles], and None for others.
        """
        if len(rows) == 1:
            return self._one(rows[0], streams[0])
        firsts = np.cumsum([0, *(each.part.tiles for each in rows)]).tolist()
        owners = [(np.searchsorted(firsts, each, side="right") - 1).tolist() for each in self.tiles]
        seen = []
        for number, (each, stream) in enumerate(zip(rows, streams, strict=True)):
            first, behind = firsts[number : number + 2]
            own = [[tile - first for tile in task if first <= tile < behind] for task in self.tiles]
            part = replace(self, name=f"{self.name}_{number}", tiles=own)
            seen.append(part._flat(each, stream))
        return self._joined(seen, owners)

    def _one(self, rows: Rows, tiles: Stream | None) -> Stream:
        """Return the seen tiles of the only source, [1, tasks, n]."""
        if tiles is None:
            return self._loaded(rows, integers(self._addresses(rows), self.sizes))
        if self._sees_all(rows):
            return self._padded(tiles)
        return self._joined([self._seen(rows, tiles)], [[0] * len(task) for task in self.tiles])

    def _flat(self, rows: Rows, tiles: Stream | None) -> Stream:
        """Return the seen tiles of one of several sources, [number of tiles]."""
        if tiles is None:
            addresses = [place for each in self._addresses(rows) for place in each]
            return Flatten(0, 1)(self._loaded(rows, Metadata(np.array(addresses, np.int64))()))
        if self._sees_all(rows):
            return self._padded(Flatten(0, 2)(tiles))
        return self._seen(rows, tiles)

    def _joined(self, streams: Sequence[Stream], owners: Lists) -> Stream:
        """Merge the tiles of all sources in the order of the tasks, [1, tasks, n]."""
        route = selectors(owners, len(streams), self.sizes)
        return Flatten(0, 1)(Reassemble(name=f"{self.name}_join")(streams, route))

    def _loaded(self, rows: Rows, addresses: Stream) -> Stream:
        load = RandomOffChipLoad(
            rows.tensor(self.heads), (rows.part.rows, rows.columns), name=self.name
        )
        return self._padded(load(addresses))

    def _addresses(self, rows: Rows) -> Lists:
        heads = self.heads.key_heads
        per_request = self.heads.query_tiles * heads
        addresses = []
        for task, tiles in zip(self.tasks, self.tiles, strict=True):
            head = task // per_request * heads + task % heads
            addresses.append([head * rows.part.tiles + tile for tile in tiles])
        return addresses

    def _sees_all(self, rows: Rows) -> bool:
        return all(len(task) == rows.part.tiles for task in self.tiles)

    def _seen(self, rows: Rows, tiles: Stream) -> Stream:
        """Drop the unseen tiles of [1, tasks, n]."""
        hidden = np.ones((len(self.tiles), rows.part.tiles, 1), np.int64)
        for task, each in enumerate(self.tiles):
            hidden[task, list(each)] = 0
        seen, rest = Partition(2, name=f"{self.name}_seen")(tiles, Selectors(hidden, 2)())
        self.sizes.extend(dealt((seen, rest), hidden))
        Consumer()(rest)
        return self._padded(seen)

    def _padded(self, tiles: Stream) -> Stream:
        if tile_of(tiles).rows == self.heads.columns:
            return tiles
        return Map(PadRows(self.heads.columns))(tiles)


@dataclass(frozen=True)
class Heads:
    """Sizes of an attention.

    Attributes:
        group: query heads per key head; their queries share a tile.
        queries: number of queries of a head.
        rows: number of queries of each head in a tile.
        columns: number of keys in a tile.
    """

    batch: int
    key_heads: int
    group: int
    queries: int
    rows: int
    columns: int

    @property
    def heads(self) -> int:
        return self.key_heads * self.group

    @property
    def query_tiles(self) -> int:
        return self.queries // self.rows

    @property
    def tasks(self) -> int:
        return self.batch * self.query_tiles * self.key_heads


@dataclass(frozen=True)
class Part:
    """Consecutive keys from one source.

    Attributes:
        rows: number of keys in a tile; the last tile may have fewer.
        knows_rows: a shorter tile carries its valid rows; otherwise the mask hides the padding.
    """

    count: int
    rows: int
    knows_rows: bool

    @property
    def tiles(self) -> int:
        return -(-self.count // self.rows)


@dataclass(frozen=True)
class Mask:
    """Booleans that are true if a query sees a key, or a bias for the scores.

    Attributes:
        shape: [batch, heads, queries, keys]; a dimension is 1 if the mask is equal along it.
        known: the data are available while planning, and decide which tiles are read.
    """

    shape: tuple[int, int, int, int]
    array: Callable[[], NDArray[np.generic]]
    dtype: np.dtype
    known: bool = True


@dataclass(frozen=True)
class Visits:
    """The tiles that each task reads.

    Attributes:
        tiles: for each task the tiles of keys that it sees; numbers continue from part to part.
        masks: for each of these tiles the number of its mask in ``table``; -1 without a mask.
        count, rows: the number of tiles in the table, and the rows of each.
        table: [count * rows, columns].
    """

    tiles: tuple[tuple[int, ...], ...]
    masks: tuple[tuple[int, ...], ...]
    count: int
    rows: int
    dtype: np.dtype
    table: Callable[[], NDArray[np.generic]]


def causal(queries: int, keys: int) -> Mask:
    """Return the mask with which query i sees the keys up to key i, PyTorch's ``is_causal``."""
    array = np.tri(queries, keys, dtype=bool)[None, None]
    return Mask((1, 1, queries, keys), lambda: array, array.dtype)


def visits(heads: Heads, parts: tuple[Part, ...], mask: Mask | None) -> Visits:
    """Return the tiles of keys that each task reads, with their masks.

    ``parts`` are in the order of the mask's last dimension. Without a ``mask`` every query sees
    every key.
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
        order = np.argsort(chosen)  # in the order of their first use
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
        # The rows of a tile of queries for all heads that share keys; one row if rows are equal.
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
        """Return the tiles of a mask, which hides the padding behind the keys of a part."""
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
        """Return which tiles any query sees, and which tiles take a mask."""
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
        # A bias that is so far below the largest one of its row reduces the weight to 0.
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
    whole = np.ascontiguousarray(rows)
    width = math.prod(whole.shape[1:]) * whole.dtype.itemsize
    return whole.view(np.uint8).reshape(len(whole), width).view(np.dtype((np.void, width)))[:, 0]

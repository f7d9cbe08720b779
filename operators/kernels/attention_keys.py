"""Keys and values as attention reads them: the tiles that its tasks see, in order.

What is in off-chip memory is loaded by addresses, what is seen and nothing else. What a kernel
gives is on chip and passes as a whole, once for each tile of queries; what is not seen is dropped
there. Where both are read, as a cache and the new keys behind it, they are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabric import Layout, Stream, TileType, dtype_name
from operators.consumer import Consumer
from operators.flatten import Flatten
from operators.functions.rows import PadRows
from operators.functions.selection import OneHot
from operators.kernels.attention_mask import Heads, Part
from operators.kernels.tensors import Computed, Stored, View
from operators.map import Map
from operators.metadata import Metadata
from operators.partition import Partition
from operators.ragged_integers import RaggedIntegers
from operators.random_off_chip_load import RandomOffChipLoad
from operators.reassemble import Reassemble
from operators.selectors import Selectors
from operators.tiles.tensor import Tensor

__all__ = ["Lists", "Rows", "integers", "read", "selectors"]

Lists = Sequence[Sequence[int]]
"""Of each task a list of numbers."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Keys or values that come from one place.

    Attributes:
        view: [batch, heads, keys, columns]; only every ``step``-th head is read.
        step: heads that are the same.
        part: their tiles.
    """

    view: View
    step: int
    part: Part

    @property
    def columns(self) -> int:
        """Of a tile."""
        return self.view.shape[-1]

    @property
    def is_computed(self) -> bool:
        """Whether a kernel gives them."""
        return isinstance(self.view.source, Computed)

    def layout(self, heads: Heads) -> Layout:
        """Return how all tasks read what a kernel gives: again for each tile of queries."""
        rows = self.part.rows
        return Layout(
            self.view.shape,
            (1, 1, rows, self.columns),
            trips=(heads.batch, heads.query_tiles, heads.key_heads, self.part.tiles),
            steps=(1, 1, self.step, rows),
            map=(0, None, 1, 2),
        )

    def tensor(self, heads: Heads) -> Tensor:
        """Return what is in memory: each head's rows behind each other, up to whole tiles."""
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


def integers(lists: Lists) -> Stream:
    """Return numbers as [1, tasks, n], n ragged unless all lists are equally long."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Metadata(np.array(lists, np.int64))()
    return RaggedIntegers(lists)()


def selectors(lists: Lists, width: int) -> Stream:
    """Return one-hot selectors as [1, tasks, n], as ``integers``."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Selectors(np.array(lists, np.int64)[..., None], width)()
    return Map(OneHot(width))(RaggedIntegers(lists)())


def read(
    name: str,
    heads: Heads,
    rows: Sequence[Rows],
    given: Sequence[Stream | None],
    tasks: Sequence[int],
    tiles: Lists,
) -> Stream:
    """Return the tiles that tasks see, [1, tasks, n].

    Args:
        name: what the names of loads start with.
        heads: the attention.
        rows: where keys or values come from.
        given: of each of them that is computed, the tiles of these tasks, [1, tasks, its tiles].
        tasks: which of all.
        tiles: what each of them sees, numbered through all ``rows``.
    """
    firsts = np.cumsum([0, *(each.part.tiles for each in rows)])
    if len(rows) == 1:
        return _one(name, heads, rows[0], given[0], tasks, tiles)
    whose = [(np.searchsorted(firsts, each, side="right") - 1).tolist() for each in tiles]
    streams = []
    for number, (each, stream) in enumerate(zip(rows, given, strict=True)):
        own = [
            [
                tile - int(firsts[number])
                for tile, owner in zip(*pair, strict=True)
                if owner == number
            ]
            for pair in zip(tiles, whose, strict=True)
        ]
        streams.append(_flat(f"{name}_{number}", heads, each, stream, tasks, own))
    joined = Reassemble(name=f"{name}_join")(streams, selectors(whose, len(rows)))
    return Flatten(0, 1)(joined)


def _one(
    name: str, heads: Heads, rows: Rows, given: Stream | None, tasks: Sequence[int], tiles: Lists
) -> Stream:
    """Return what tasks see of keys that come from one place, [1, tasks, n]."""
    if given is None:
        return _loaded(name, heads, rows, integers(_addresses(heads, rows, tasks, tiles)))
    if all(len(each) == rows.part.tiles for each in tiles):
        return _whole(given, heads)
    seen = _seen(name, given, rows, tiles)
    joined = Reassemble(name=f"{name}_join")([_whole(seen, heads)], selectors(_zeros(tiles), 1))
    return Flatten(0, 1)(joined)


def _flat(
    name: str, heads: Heads, rows: Rows, given: Stream | None, tasks: Sequence[int], tiles: Lists
) -> Stream:
    """Return what tasks see of keys that come from one place among several, [their number]."""
    if given is None:
        addresses = [place for each in _addresses(heads, rows, tasks, tiles) for place in each]
        return Flatten(0, 1)(_loaded(name, heads, rows, Metadata(np.array(addresses, np.int64))()))
    if all(len(each) == rows.part.tiles for each in tiles):
        return _whole(Flatten(0, 2)(given), heads)
    return _whole(_seen(name, given, rows, tiles), heads)


def _loaded(name: str, heads: Heads, rows: Rows, addresses: Stream) -> Stream:
    tile = (rows.part.rows, rows.columns)
    return _whole(RandomOffChipLoad(rows.tensor(heads), tile, name=name)(addresses), heads)


def _addresses(heads: Heads, rows: Rows, tasks: Sequence[int], tiles: Lists) -> Lists:
    """Return where in memory the tiles are that tasks see."""
    per_request = heads.query_tiles * heads.key_heads
    found = []
    for task, each in zip(tasks, tiles, strict=True):
        head = task // per_request * heads.key_heads + task % heads.key_heads
        found.append([head * rows.part.tiles + tile for tile in each])
    return found


def _seen(name: str, given: Stream, rows: Rows, tiles: Lists) -> Stream:
    """Drop the tiles of [1, tasks, n] that are not seen; [those that are]."""
    hidden = np.ones((len(tiles), rows.part.tiles, 1), np.int64)
    for task, each in enumerate(tiles):
        hidden[task, list(each)] = 0
    seen, rest = Partition(2, name=f"{name}_seen")(given, Selectors(hidden, 2)())
    Consumer()(rest)
    return seen


def _whole(tiles: Stream, heads: Heads) -> Stream:
    """Return tiles with as many rows as all have."""
    assert isinstance(tiles.value, TileType)
    if tiles.value.rows == heads.columns:
        return tiles
    return Map(PadRows(heads.columns))(tiles)


def _zeros(lists: Lists) -> Lists:
    return [[0] * len(each) for each in lists]

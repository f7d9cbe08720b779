"""Keys and values as attention reads them: the tiles that its tasks see, in order.

What is in off-chip memory is loaded by addresses, what is seen and nothing else. What a kernel
gives is on chip and passes as a whole, once for each tile of queries; what is not seen is dropped
there. Where both are read, as a cache and the new keys behind it, they are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fabric import Dim, Layout, Stream, TileType
from fabric.extend import dtype_name
from operators.consumer import Consumer
from operators.flatten import Flatten
from operators.functions.choosing import OneHot
from operators.functions.row_functions import PadRows
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

__all__ = ["Lists", "Reader", "Rows", "Sizes", "dealt", "integers", "selectors"]

Lists = Sequence[Sequence[int]]
"""Of each task a list of numbers."""

Sizes = list[tuple[Dim, Fraction]]
"""What known data make of dimensions; of a ragged one the mean."""


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


def integers(lists: Lists, sizes: Sizes) -> Stream:
    """Return numbers as [1, tasks, n], n ragged unless all lists are equally long."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Metadata(np.array(lists, np.int64))()
    return _ragged(lists, sizes)


def selectors(lists: Lists, width: int, sizes: Sizes) -> Stream:
    """Return one-hot selectors as [1, tasks, n], as ``integers``."""
    if len({len(each) for each in lists}) == 1 and lists[0]:
        return Selectors(np.array(lists, np.int64)[..., None], width)()
    return Map(OneHot(width))(_ragged(lists, sizes))


def dealt(streams: Sequence[Stream], numbers: np.ndarray) -> Sizes:
    """Return how many elements a Partition deals out to ``streams`` by these numbers of them."""
    counts = np.bincount(numbers.reshape(-1), minlength=len(streams)).tolist()
    return [(each.shape[0], Fraction(n)) for each, n in zip(streams, counts, strict=True)]


def _ragged(lists: Lists, sizes: Sizes) -> Stream:
    result = RaggedIntegers(lists)()
    sizes.append((result.shape[-1], Fraction(sum(map(len, lists)), len(lists))))
    return result


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads what some tasks see of keys or values.

    Attributes:
        name: what the names of its operators start with.
        heads: the attention.
        tasks: which of all.
        tiles: what each of them sees, numbered through all places that they come from.
        sizes: that these give to dimensions are added to.
    """

    name: str
    heads: Heads
    tasks: Sequence[int]
    tiles: Lists
    sizes: Sizes

    def read(self, rows: Sequence[Rows], given: Sequence[Stream | None]) -> Stream:
        """Return the tiles that the tasks see, [1, tasks, n].

        Args:
            rows: where they come from.
            given: of each of these that is computed, its tiles: [1, tasks, as many].
        """
        if len(rows) == 1:
            return self._one(rows[0], given[0])
        firsts = np.cumsum([0, *(each.part.tiles for each in rows)]).tolist()
        whose = [(np.searchsorted(firsts, each, side="right") - 1).tolist() for each in self.tiles]
        streams = []
        for number, (each, stream) in enumerate(zip(rows, given, strict=True)):
            first, behind = firsts[number : number + 2]
            own = [[tile - first for tile in task if first <= tile < behind] for task in self.tiles]
            part = replace(self, name=f"{self.name}_{number}", tiles=own)
            streams.append(part._flat(each, stream))
        return self._joined(streams, whose)

    def _one(self, rows: Rows, given: Stream | None) -> Stream:
        """Return what is seen of tiles that all come from one place, [1, tasks, n]."""
        if given is None:
            return self._loaded(rows, integers(self._addresses(rows), self.sizes))
        if self._sees_all(rows):
            return self._padded(given)
        return self._joined([self._seen(rows, given)], [[0] * len(each) for each in self.tiles])

    def _flat(self, rows: Rows, given: Stream | None) -> Stream:
        """Return what is seen of tiles that come from this place among others, [their number]."""
        if given is None:
            addresses = [place for each in self._addresses(rows) for place in each]
            return Flatten(0, 1)(self._loaded(rows, Metadata(np.array(addresses, np.int64))()))
        if self._sees_all(rows):
            return self._padded(Flatten(0, 2)(given))
        return self._seen(rows, given)

    def _joined(self, streams: Sequence[Stream], whose: Lists) -> Stream:
        """Put tiles together as tasks see them, [1, tasks, n]."""
        route = selectors(whose, len(streams), self.sizes)
        return Flatten(0, 1)(Reassemble(name=f"{self.name}_join")(streams, route))

    def _loaded(self, rows: Rows, addresses: Stream) -> Stream:
        load = RandomOffChipLoad(
            rows.tensor(self.heads), (rows.part.rows, rows.columns), name=self.name
        )
        return self._padded(load(addresses))

    def _addresses(self, rows: Rows) -> Lists:
        """Return where in memory the tiles are that tasks see."""
        heads = self.heads.key_heads
        per_request = self.heads.query_tiles * heads
        found = []
        for task, tiles in zip(self.tasks, self.tiles, strict=True):
            head = task // per_request * heads + task % heads
            found.append([head * rows.part.tiles + tile for tile in tiles])
        return found

    def _sees_all(self, rows: Rows) -> bool:
        return all(len(each) == rows.part.tiles for each in self.tiles)

    def _seen(self, rows: Rows, given: Stream) -> Stream:
        """Drop the tiles of [1, tasks, n] that are not seen; [those that are]."""
        hidden = np.ones((len(self.tiles), rows.part.tiles, 1), np.int64)
        for task, each in enumerate(self.tiles):
            hidden[task, list(each)] = 0
        seen, rest = Partition(2, name=f"{self.name}_seen")(given, Selectors(hidden, 2)())
        self.sizes.extend(dealt((seen, rest), hidden))
        Consumer()(rest)
        return self._padded(seen)

    def _padded(self, tiles: Stream) -> Stream:
        """Return tiles with as many rows as all have."""
        assert isinstance(tiles.value, TileType)
        if tiles.value.rows == self.heads.columns:
            return tiles
        return Map(PadRows(self.heads.columns))(tiles)

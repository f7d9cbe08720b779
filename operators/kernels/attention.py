"""Attention: softmax(q @ k.T) @ v, over the keys that each query sees, and how it is tiled.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 5.5; FlashAttention, arXiv
2205.14135.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Program, Stream
from fabric.extend import dtype_name
from operators.accum import Accum, Scan
from operators.expand import Expand
from operators.flat_map import FlatMap
from operators.functions.flash_attention import (
    AttentionScores,
    MaskScores,
    Quotient,
    RescaledSum,
    RunningMaximum,
    ShiftedExp,
)
from operators.functions.retile import RetileRow, SplitTiles
from operators.kernels.attention_keys import (
    Heads,
    Lists,
    Mask,
    Part,
    Reader,
    Rows,
    Sizes,
    Visits,
    dealt,
    integers,
    selectors,
    visits,
)
from operators.kernels.following import readable
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.schedule import Schedule, fit
from operators.kernels.tensors import Computed, Stored, View
from operators.map import Map
from operators.off_chip_load import RandomOffChipLoad
from operators.partition import Parallelize, Partition
from operators.reassemble import Reassemble
from operators.shape import Flatten, Promote, redimensioned
from operators.sources import Metadata, Selectors
from operators.tiles.tensor import Tensor


class Attention(Kernel):
    """Scaled dot-product attention, one tile of queries after the other.

    A task is a tile of queries of all heads that share keys. It reads the n tiles of keys that it
    sees. If n is 0, its result is zeros. Tasks are ordered by request, then by tile of queries,
    then by key head.
    """

    family: ClassVar = "attention"

    def __init__(
        self,
        name: str,
        heads: Heads,
        queries: View,
        keys: Sequence[Rows],
        values: Sequence[Rows],
        visits: Visits,
        result: Computed,
        *,
        scale: float,
        regions: int,
    ) -> None:
        """Attend to ``keys`` and ``values``, which have the same parts along the keys.

        Queries, keys and values are [batch, heads, count, columns]. ``regions`` take the tasks in
        turn. The layout of ``result`` is ``heads_layout``.
        """
        self.heads = heads
        self._keys, self._values = tuple(keys), tuple(values)
        self._visits = visits
        self._scale = scale
        self._regions = min(regions, heads.tasks)
        self._sizes: Sizes = []
        # Keys and values in off-chip memory are not operands: the kernel loads them by addresses.
        operands = [Operand(queries, heads_layout(heads, queries.shape[-1]))]
        computed = (each for each in (*self._keys, *self._values) if each.is_computed)
        operands += [Operand(rows.view, rows.layout(heads)) for rows in computed]
        super().__init__(name, operands, result)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        heads, regions = self.heads, self._regions
        queries, *computed = [stream for stream in inputs if isinstance(stream, Stream)]
        packed = self._packed(queries)  # [1, tasks] of rows x d
        tiles = [(each.part.tiles,) for each in (*self._keys, *self._values) if each.is_computed]
        shares = [
            self._shares(packed, ()),
            *(self._shares(*each) for each in zip(computed, tiles, strict=True)),
        ]
        results = [
            self._region(number, *share) for number, share in enumerate(zip(*shares, strict=True))
        ]
        done = results[0]
        if regions > 1:
            turns = np.arange(heads.tasks)[:, None] % regions
            route = Selectors(turns, regions)()
            parts = [Flatten(0, 1)(result) for result in results]
            done = Flatten(0, 1)(Reassemble(name=f"{self.name}_in_order")(parts, route))
        cols = self.results[0].shape[-1]
        if heads.group > 1:
            done = FlatMap(SplitTiles(heads.rows, cols), name=f"{self.name}_heads")(done)
        return (redimensioned(done, (1, *heads_layout(heads, cols).trips)),)

    @override
    def configure(self, program: Program, outputs: Sequence[Streams]) -> None:
        for dim, size in self._sizes:
            program.bind(dim, size)

    def _packed(self, queries: Stream) -> Stream:
        """Put the queries of heads that share keys below each other, [1, tasks]."""
        heads = self.heads
        if heads.group == 1:
            return redimensioned(queries, (1, heads.tasks))
        groups = redimensioned(queries, (1, heads.tasks, heads.group))
        return Accum(RetileRow(), name=f"{self.name}_rows")(groups)

    def _shares(self, stream: Stream, inner: tuple[int, ...]) -> list[Stream]:
        """Return the stream of each region, [1, tasks, *inner]; the regions take tasks in turn."""
        tasks, regions = self.heads.tasks, self._regions
        stream = redimensioned(stream, (1, tasks, *inner))
        if regions == 1:
            return [stream]
        dealt = Parallelize(regions, rank=len(inner))(Flatten(len(inner), len(inner) + 1)(stream))
        return [Promote()(share) for share in dealt]

    def _region(self, number: int, queries: Stream, *computed: Stream) -> Stream:
        heads, visits = self.heads, self._visits
        name = self.name if self._regions == 1 else f"{self.name}_region_{number}"
        own = range(number, heads.tasks, self._regions)
        tiles = [visits.tiles[task] for task in own]
        streams = iter(computed)
        keys, values = (
            Reader(f"{name}_{what}", heads, own, tiles, self._sizes).read(
                parts, [next(streams) if part.is_computed else None for part in parts]
            )
            for what, parts in (("keys", self._keys), ("values", self._values))
        )
        masks = [visits.masks[task] for task in own]
        values = values.assume(*keys.shape)  # [1, tasks, n] of N x e
        repeated = Expand(name=f"{name}_queries")(Promote(0)(queries), keys)  # of R x d
        product = Map(AttentionScores(self._scale), name=f"{name}_scores")(repeated, keys)
        scores = self._masked(name, product, masks)  # [1, tasks, n] of R x N
        running = Scan(RunningMaximum(), name=f"{name}_maximum")(scores)  # of (R x 1, R x 1)
        weights = Map(ShiftedExp(), name=f"{name}_exp")(scores, running)  # of R x N
        sums = Accum(RescaledSum(), name=f"{name}_weighted")(weights, values, running)  # [1, tasks]
        rounded = Quotient(dtype_name(self.results[0].dtype))
        return Map(rounded, name=f"{name}_quotient")(sums)

    def _masked(self, name: str, scores: Stream, masks: Lists) -> Stream:
        """Return the masked scores; unmasked tiles, with -1 in ``masks``, bypass the Map."""
        taken = [number for mask in masks for number in mask if number >= 0]
        if not taken:
            return scores
        visits, sizes = self._visits, self._sizes
        tile = visits.rows, self.heads.columns
        shape = visits.count * tile[0], tile[1]
        table = Tensor(shape, visits.table, dtype=dtype_name(visits.dtype))
        load = RandomOffChipLoad(table, tile, name=f"{name}_mask_load")
        masking = Map(MaskScores(), name=f"{name}_mask")
        if len(taken) == sum(map(len, masks)):
            return masking(scores, load(integers(masks, sizes)).assume(*scores.shape))
        is_masked = [[int(number >= 0) for number in mask] for mask in masks]
        route = selectors(is_masked, 2, sizes).assume(*scores.shape)
        plain, masked = Partition(2, name=f"{name}_partly")(scores, route)
        numbers = np.concatenate([np.array(flags, int) for flags in is_masked])
        sizes.extend(dealt((plain, masked), numbers))
        tiles = Flatten(0, 1)(load(Metadata(np.array(taken, np.int64))()))
        joined = Reassemble(name=f"{name}_masked")([plain, masking(masked, tiles)], route)
        return Flatten(0, 1)(joined).assume(*scores.shape)


def heads_layout(heads: Heads, columns: int) -> Layout:
    """Return the layout of queries and results, [batch, heads, queries, columns], task by task."""
    layout = Layout(
        (heads.batch, heads.heads, heads.queries, columns),
        (1, 1, heads.rows, columns),
        trips=(heads.batch, heads.query_tiles, heads.key_heads, heads.group),
        steps=(1, heads.rows, heads.group, 1),
        map=(0, 2, 1, 1),
    )
    return layout.nested([loop for loop in layout.loops if loop.trips > 1])


def plan_attention(
    name: str,
    queries: View,
    keys: Sequence[View],
    values: Sequence[View],
    mask: Mask | None,
    *,
    scale: float,
    dtype: np.dtype,
    schedule: Schedule,
) -> Attention:
    """Return an attention of ``queries`` to ``keys``.

    ``queries`` are [batch, heads, queries, d], ``keys`` [batch, n, keys, d] and ``values`` [batch,
    n, keys, e]; n divides the heads. Keys and values have the same parts along the keys. An expand
    may have repeated heads: one copy is read. Without a ``mask`` every query sees every key.
    """
    batch, many, count, _ = queries.shape
    steps = [_alike(each) for each in (*keys, *values)]
    step = math.gcd(*steps)
    key_heads = keys[0].shape[1] // step
    parts = _parts(list(zip(keys, values, strict=True)), schedule.tile_keys)
    heads = Heads(
        batch,
        key_heads,
        many // key_heads,
        count,
        _rows(queries, schedule),
        max(part.rows for part in parts),
    )
    shape = (batch, many, count, values[0].shape[-1])
    result = Computed(name, shape, dtype, heads_layout(heads, shape[-1]))
    return Attention(
        name,
        heads,
        queries,
        [Rows(view, step, part) for view, part in zip(keys, parts, strict=True)],
        [Rows(view, step, part) for view, part in zip(values, parts, strict=True)],
        visits(heads, parts, mask),
        result,
        scale=scale,
        regions=schedule.attention_regions,
    )


def _alike(view: View) -> int:
    """Return how many neighbouring heads are equal, because an expand repeated one head."""
    probe = Layout(view.shape, (1,) * 4, trips=(view.shape[1],), steps=(1,), map=(1,))
    pulled = view.pull(probe)
    loops = pulled.layout.canonical().loops if pulled is not None else ()
    return loops[-1].trips if loops and loops[-1].dim is None else 1


def _rows(queries: View, schedule: Schedule) -> int:
    """Return the queries in a tile: the rows of the arriving tiles if each tile has one head."""
    layout = queries.layout
    if layout is not None and layout.tile == (1, 1, layout.rows, queries.shape[-1]):
        return layout.rows
    return _readable(queries, fit(queries.shape[2], schedule.tile_rows))


def _parts(pairs: Sequence[tuple[View, View]], wish: int) -> tuple[Part, ...]:
    # A kernel's result has a multiple of its tiles' rows. Tensors in memory may be padded with rows
    # of zeros, and are read in tiles with as many rows as the largest tile of any part.
    rows = [_part_rows(keys, values, wish) for keys, values in pairs]
    widest = max(rows)
    return tuple(
        Part(keys.shape[2], widest, knows_rows=False)
        if _are_stored(keys, values)
        else Part(keys.shape[2], each, knows_rows=True)
        for (keys, values), each in zip(pairs, rows, strict=True)
    )


def _part_rows(keys: View, values: View, wish: int) -> int:
    """Return the rows of a tile: a divisor of the keys, or any number if tiles may be padded."""
    count = keys.shape[2]
    rows, most = fit(count, wish), min(wish, count)
    if not _are_stored(keys, values):
        return math.gcd(_readable(keys, rows), _readable(values, rows))
    return rows if most <= 2 * rows <= 2 * wish else most


def _are_stored(keys: View, values: View) -> bool:
    return isinstance(keys.source, Stored) and isinstance(values.source, Stored)


def _readable(view: View, rows: int) -> int:
    """Return the rows of one head in a tile: ``rows``, or fewer if the view needs it."""
    wish = Layout.tiled(view.shape, (1, 1, rows, view.shape[-1]))
    return readable((view,), wish, whole_rows=True).rows

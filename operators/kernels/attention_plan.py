"""How attention is tiled, from what its operands are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fabric import Layout
from operators.kernels.attention import Attention, heads_layout
from operators.kernels.attention_keys import Rows
from operators.kernels.attention_mask import Heads, Mask, Part, visits
from operators.kernels.following import readable
from operators.kernels.schedule import Schedule, fit
from operators.kernels.tensors import Computed, Stored, View

__all__ = ["plan_attention"]


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
    """Return the kernel of an attention.

    Args:
        name: of its operators.
        queries: [batch, heads, queries, d].
        keys: [batch, key heads, keys, d] in one or more parts along the keys; the key heads divide
            the heads.
        values: [batch, key heads, keys, e] in as many parts.
        mask: None where every query sees every key.
        scale: of the scores.
        dtype: of the result.
        schedule: says how large tiles are.
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
    """Return how many neighbouring heads are the same: those that an expand made of one."""
    probe = Layout(view.shape, (1,) * 4, trips=(view.shape[1],), steps=(1,), map=(1,))
    pulled = view.pull(probe)
    loops = pulled.layout.canonical().loops if pulled is not None else ()
    return loops[-1].trips if loops and loops[-1].dim is None else 1


def _rows(queries: View, schedule: Schedule) -> int:
    """Return the queries of a tile: those of the tiles that come, where each is of one head."""
    layout = queries.layout
    if layout is not None and layout.tile == (1, 1, layout.rows, queries.shape[-1]):
        return layout.rows
    return _readable(queries, fit(queries.shape[2], schedule.tile_rows))


def _parts(pairs: Sequence[tuple[View, View]], wish: int) -> tuple[Part, ...]:
    """Return the tiles of each part of keys and values.

    What a kernel gives comes in tiles that divide it; what is in memory may be laid out with rows
    of zeros behind it, and has the tiles that the widest part has.
    """
    rows = [_part_rows(keys, values, wish) for keys, values in pairs]
    widest = max(rows)
    return tuple(
        Part(keys.shape[2], widest, knows_rows=False)
        if _are_stored(keys, values)
        else Part(keys.shape[2], each, knows_rows=True)
        for (keys, values), each in zip(pairs, rows, strict=True)
    )


def _part_rows(keys: View, values: View, wish: int) -> int:
    """Return the rows of a tile: a divisor, or where it may be padded and has no good one more."""
    count = keys.shape[2]
    rows, most = fit(count, wish), min(wish, count)
    if not _are_stored(keys, values):
        return math.gcd(_readable(keys, rows), _readable(values, rows))
    return rows if most <= 2 * rows <= 2 * wish else most


def _are_stored(keys: View, values: View) -> bool:
    return isinstance(keys.source, Stored) and isinstance(values.source, Stored)


def _readable(view: View, rows: int) -> int:
    """Return how many rows of a head a tile can have: ``rows``, or fewer where the view asks so."""
    wish = Layout.tiled(view.shape, (1, 1, rows, view.shape[-1]))
    return readable((view,), wish, whole_rows=True).rows

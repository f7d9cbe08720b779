from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, Program, simulate
from operators.kernels.attention import Attention, plan_attention
from operators.kernels.attention_keys import Mask
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Source, Stored, View
from tests.operators.kernels.driving import driven
from tests.profiles import examples

Array = NDArray[np.generic]

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
SIZES = st.integers(1, 3)


@dataclass
class Attended:
    kernel: Attention
    data: dict[Source, Array]
    wanted: Array

    def program(self, flops_per_cycle: int | None = None) -> Program:
        wanted = self.wanted
        return driven(self.kernel, self.data, lambda: wanted, flops_per_cycle=flops_per_cycle)


def _torch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(array, bool if array.dtype == bool else np.float64))


def attended(
    queries: Array,
    keys: Array,
    values: Array,
    mask: Array | None = None,
    *,
    stored: tuple[bool, ...] = (True,),
    cuts: tuple[int, ...] = (),
    schedule: Schedule | None = None,
    permuted: bool = False,
    expanded: bool = False,
    scale: float | None = None,
    known: bool = True,
    given_rows: int = 0,
) -> Attended:
    data: dict[Source, Array] = {}

    def view(name: str, array: Array, is_stored: bool, tile_rows: int = 0) -> View:
        if is_stored:
            return View.of(Stored.of(name, array.shape, array.dtype, lambda: array))
        held = array.transpose(0, 2, 1, 3) if permuted else array
        tile = (1, 1, 1, 1)
        if tile_rows:
            rows, width = tile_rows, held.shape[-1]
            tile = (1, rows, 1, width) if permuted else (1, 1, rows, width)
        source = Computed(name, held.shape, held.dtype, Layout.tiled(held.shape, tile))
        data[source] = held
        return View.of(source).permuted((0, 2, 1, 3)) if permuted else View.of(source)

    def parts(name: str, array: Array) -> list[View]:
        pieces = np.split(array, cuts, axis=2)
        views = [
            view(f"{name}{i}", *each) for i, each in enumerate(zip(pieces, stored, strict=True))
        ]
        if not expanded:
            return views
        group, wide = queries.shape[1] // keys.shape[1], []
        for each in views:
            batch, heads, *rest = each.shape
            apart = each.reshaped((batch, heads, 1, *rest)).expanded((batch, heads, group, *rest))
            wide.append(apart.reshaped((batch, heads * group, *rest)))
        return wide

    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    kernel = plan_attention(
        "attention",
        view("q", queries, is_stored=False, tile_rows=given_rows),
        parts("k", keys),
        parts("v", values),
        None if mask is None else _mask(mask, known=known),
        scale=scale,
        dtype=queries.dtype,
        schedule=schedule or Schedule(),
    )
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *map(_torch, (queries, keys, values)),
        attn_mask=None if mask is None else _torch(mask),
        scale=scale,
        enable_gqa=True,
    )
    return Attended(kernel, data, wanted.numpy())


def _mask(array: Array, *, known: bool) -> Mask:
    batch, heads, rows, keys = array.shape
    return Mask((batch, heads, rows, keys), lambda: array, array.dtype, known)


def numbers(seed: int, *shape: int, dtype: np.dtype = F32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@st.composite
def masks(draw: st.DrawFn, batch: int, heads: int, rows: int, keys: int, dtype: np.dtype) -> Array:
    kind = draw(st.sampled_from(["causal", "sliding", "lengths", "left", "any", "bias", "lowest"]))
    row, key = np.arange(rows)[:, None] + keys - rows, np.arange(keys)
    lengths = np.array(draw(st.lists(st.integers(0, keys), min_size=batch, max_size=batch)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    wide = (draw(st.sampled_from([1, batch])), draw(st.sampled_from([1, heads])))
    whole = (*wide, draw(st.sampled_from([1, rows])), keys)
    result: Array
    match kind:
        case "causal":
            result = (key <= row)[None, None]
        case "sliding":
            result = ((key <= row) & (key > row - draw(st.integers(1, 4))))[None, None]
        case "lengths":
            result = key < lengths[:, None, None, None]
        case "left":
            result = (key >= lengths[:, None, None, None]) & (key <= row)
        case "any":
            result = random.random(whole) < draw(st.sampled_from([0.1, 0.5, 0.9]))
        case "bias":
            bias = random.standard_normal(whole)
            result = np.where(random.random(whole) < 0.3, -np.inf, bias).astype(dtype)
        case _:
            lowest = float(vars(ml_dtypes)["finfo"](dtype).min)
            result = np.where(random.random(whole) < 0.5, lowest, 0).astype(dtype)
    return result


@st.composite
def attentions(draw: st.DrawFn) -> Attended:
    batch, key_heads, group = draw(SIZES), draw(SIZES), draw(SIZES)
    rows, keys = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    width, depth = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    dtype, seed = draw(st.sampled_from([F32, BF16])), draw(st.integers(0, 99))
    cuts = tuple(draw(st.sets(st.integers(1, keys - 1), max_size=2))) if keys > 1 else ()
    heads = key_heads * group
    return attended(
        numbers(seed, batch, heads, rows, width, dtype=dtype),
        numbers(seed + 1, batch, key_heads, keys, width, dtype=dtype),
        numbers(seed + 2, batch, key_heads, keys, depth, dtype=dtype),
        draw(st.none() | masks(batch, heads, rows, keys, dtype)),
        stored=tuple(draw(st.booleans()) for _ in range(len(cuts) + 1)),
        cuts=tuple(sorted(cuts)),
        schedule=Schedule(
            tile_rows=draw(st.integers(1, 8)),
            tile_keys=draw(st.integers(1, 8)),
            attention_regions=draw(SIZES),
        ),
        permuted=draw(st.booleans()),
        expanded=draw(st.booleans()),
        scale=draw(st.none() | st.just(0.3)),
        given_rows=draw(st.sampled_from([0, *(n for n in range(1, rows + 1) if rows % n == 0)])),
    )


@examples(quick=12, deep=150)
@given(attentions())
def test_attention_equals_pytorch(drawn: Attended) -> None:
    report = simulate(drawn.program(), mode="functional")

    assert report.verified, report.verification


@examples(quick=5, deep=40)
@given(attentions())
def test_attention_takes_the_same_cycles_without_data(drawn: Attended) -> None:
    program = drawn.program()

    functional, timing = (simulate(program, mode=mode) for mode in ("functional", "timing"))

    assert functional.cycles == timing.cycles
    assert functional.off_chip_traffic_bytes == timing.off_chip_traffic_bytes
    assert functional.flops == timing.flops


@dataclass(frozen=True)
class Count:
    visits: int
    masked: int


def counted(mask: Array, heads: int, key_heads: int, tile_rows: int, tile_keys: int) -> Count:
    batch, _, rows, keys = mask.shape
    mask = np.broadcast_to(mask, (batch, heads, rows, keys))
    visits = masked = 0
    for request in range(batch):
        for first in range(0, heads, heads // key_heads):
            for row in range(0, rows, tile_rows):
                for key in range(0, keys, tile_keys):
                    seen = mask[
                        request,
                        first : first + heads // key_heads,
                        row : row + tile_rows,
                        key : key + tile_keys,
                    ]
                    visits += bool(seen.any())
                    masked += bool(seen.any() and not seen.all())
    return Count(visits, masked)


def _operands(
    batch: int, heads: int, key_heads: int, rows: int, keys: int
) -> tuple[Array, Array, Array]:
    return (
        numbers(0, batch, heads, rows, 8),
        numbers(1, batch, key_heads, keys, 8),
        numbers(2, batch, key_heads, keys, 8),
    )


@examples(quick=5, deep=40)
@given(st.data())
def test_traffic_follows_the_mask(data: st.DataObject) -> None:
    batch, key_heads, group = data.draw(SIZES), data.draw(SIZES), data.draw(SIZES)
    tile_rows, tile_keys = data.draw(SIZES), data.draw(st.integers(2, 3))
    rows, keys = tile_rows * data.draw(SIZES), tile_keys * data.draw(SIZES)
    heads = key_heads * group
    mask = np.random.default_rng(data.draw(st.integers(0, 99))).random(
        (batch, data.draw(st.sampled_from([1, heads])), rows, keys)
    ) < data.draw(st.sampled_from([0.1, 0.3, 0.8]))
    operands = _operands(batch, heads, key_heads, rows, keys)
    schedule = Schedule(tile_rows=tile_rows, tile_keys=tile_keys)
    drawn = attended(*operands, mask, schedule=schedule)
    tiles = drawn.kernel.heads
    count = counted(mask, heads, key_heads, tiles.rows, tiles.columns)

    report = simulate(drawn.program(), mode="timing")

    streamed = 2 * operands[0].nbytes  # queries and results
    mask_rows = tiles.rows * (1 if mask.shape[1] == 1 else group)
    read = count.visits * tiles.columns * 16 * F32.itemsize
    read += count.masked * mask_rows * tiles.columns
    assert streamed + read == report.off_chip_traffic_bytes

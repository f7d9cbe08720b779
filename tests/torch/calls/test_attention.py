"""The call of attention as models spell it: ranks, masks, shared heads, caches, refusals."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from fabric import Program, ProgramError, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.profiles import examples
from tests.torch.calls.calling import DTYPES, Single, check

SIZES = st.integers(1, 3)
SCHEDULES = st.builds(
    Schedule,
    tile_rows=st.sampled_from([1, 2, 8]),
    tile_keys=st.sampled_from([2, 3, 8]),
    attention_regions=st.integers(1, 2),
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    lead = tuple(draw(st.lists(SIZES, max_size=3)))
    rows, keys, width = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(SIZES)
    dtype = draw(DTYPES)
    torch.manual_seed(draw(st.integers(0, 99)))
    kwargs: dict[str, Any] = {}
    key_lead = lead
    if len(lead) == 2 and draw(st.booleans()):
        kwargs["enable_gqa"] = True
        lead = (lead[0], lead[1] * draw(SIZES))
    match draw(st.sampled_from(["", "causal", "scale", "mask"])):
        case "causal":
            kwargs["is_causal"] = True
        case "scale":
            kwargs["scale"] = 0.5
        case "mask":
            outer = tuple(draw(st.sampled_from([1, size])) for size in lead)
            outer = outer[draw(st.integers(0, len(outer))) :]
            mask_rows = draw(st.sampled_from([1, rows]))
            kwargs["attn_mask"] = torch.rand(*outer, mask_rows, keys) < 0.6
        case _:
            pass
    operands = (
        torch.randn(*lead, rows, width, dtype=dtype),
        torch.randn(*key_lead, keys, width, dtype=dtype),
        torch.randn(*key_lead, keys, draw(SIZES), dtype=dtype),
    )
    single = Single(draw(SCHEDULES), draw)

    return single.program("aten.scaled_dot_product_attention.default", operands, kwargs)


@examples(quick=15, deep=60)
@given(programs())
def test_call(program: Program) -> None:
    check(program)


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


HEADS = some(2, 3, 4, 6), some(2, 3, 5, 6), some(2, 3, 5, 2)
BATCH = tuple(each[:, 0] for each in HEADS)
NESTED = tuple(torch.stack([each, each.flip(-2)], 1) for each in HEADS)
"""Queries [2, 2, 3, 4, 6] with keys and values of five tokens; without one dimension, or two."""


def masked(*shape: int) -> Any:
    return some(*shape) > -0.5


@pytest.mark.parametrize(
    "arguments",
    [
        *((*HEADS, masked(*shape)) for shape in ((4, 5), (2, 1, 1, 5), (3, 4, 5), (1, 3, 1, 5))),
        *((*BATCH, masked(*shape)) for shape in ((4, 5), (1, 4, 5), (2, 1, 5), (2, 4, 5))),
        *((*NESTED, masked(*shape)) for shape in ((5,), (1, 1, 1, 4, 5), (2, 1, 4, 5))),
        *((*NESTED, masked(*shape)) for shape in ((3, 1, 5), (2, 1, 1, 1, 5))),
        (*HEADS, some(2, 1, 4, 5)),
        (*HEADS, masked(4, 1) | True),
        (*HEADS, None, 0.0, True),
        (*HEADS, None, 0.0, False, {"scale": 0.7}),
        (*BATCH, None, 0.0, True),
        (HEADS[0], *(each[:1] for each in HEADS[1:])),
        (HEADS[0], *(each[:, :1] for each in HEADS[1:]), {"enable_gqa": True}),
        (some(2, 4, 3, 6), *(each[:, 1:] for each in HEADS[1:]), {"enable_gqa": True}),
    ],
)
@pytest.mark.parametrize("regions", [1, 2])
def test_what_is_said_exactly(arguments: Any, regions: int) -> None:
    given = arguments[-1] if isinstance(arguments[-1], dict) else {}
    single = Single(Schedule(tile_rows=2, tile_keys=2, attention_regions=regions), lambda _: False)
    target = "aten.scaled_dot_product_attention.default"

    check(single.program(target, arguments[: len(arguments) - bool(given)], given))


@pytest.mark.parametrize(
    ("more", "names"), [((0.0, True), {}), ((), {"attn_mask": some(4, 5)}), ((), {"scale": 0.7})]
)
def test_what_flash_attention_is_given(more: Any, names: dict[str, Any]) -> None:
    target = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    single = Single(Schedule(tile_keys=2), lambda _: False)
    operands = HEADS[0], HEADS[1], HEADS[1] + 1

    check(single.program(target, (*operands, *more), names))


def test_flash_attention() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 4, 4) for _ in range(3))

    class Flash(torch.nn.Module):
        def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
            call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
            return call(q, k, v, attn_mask=torch.where(mask, 0.0, -torch.inf))[0]

    check(from_torch(Flash(), (q, k, v, torch.ones(4, 4).tril() > 0)))


class Cached(torch.nn.Module):
    def __init__(self, *, returns_cache: bool) -> None:
        super().__init__()
        self.returns_cache = returns_cache

    def forward(self, q: Any, past: Any, new: Any, lengths: Any) -> Any:
        keys, values = (
            torch.cat([each, torch.nn.functional.silu(token)], 2)
            for each, token in zip(past, new, strict=True)
        )
        batch, heads, count, width = keys.shape
        shared = q.shape[1] // heads
        wide = [
            each[:, :, None]
            .expand(batch, heads, shared, count, width)
            .reshape(batch, heads * shared, count, width)
            for each in (keys, values)
        ]
        places = torch.arange(count, device=lengths.device)
        mask = (places < lengths[:, None]) | (places == count - 1)
        result = scaled_dot_product_attention(q, wide[0], wide[1], mask[:, None, None])
        return (result, keys, values) if self.returns_cache else result


def _decode(
    room: int,
    dtype: torch.dtype,
    *,
    returns_cache: bool,
    regions: int = 1,
    device: str = "cpu",
) -> Program:
    torch.manual_seed(0)
    options: dict[str, Any] = {"dtype": dtype, "device": device}
    args = (
        torch.randn(2, 4, 1, 8, **options),
        tuple(torch.randn(2, 2, room, 8, **options) for _ in range(2)),
        tuple(torch.randn(2, 2, 1, 8, **options) for _ in range(2)),
        torch.tensor([3, 9]),
    )
    schedule = Schedule(tile_keys=4, attention_regions=regions)
    return from_torch(Cached(returns_cache=returns_cache), args, schedule=schedule)


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.parametrize("returns_cache", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cache(dtype: torch.dtype, returns_cache: bool, regions: int) -> None:
    check(_decode(12, dtype, returns_cache=returns_cache, regions=regions))


def test_cache_that_is_not_full() -> None:
    reports = [simulate(_decode(room, torch.float32, returns_cache=False)) for room in (12, 36)]

    head, item = 8, 4
    cached = 2 * 2 * (1 + 3) * 4 * head * item
    masks = 2 * 2 * 4  # the last tile of each request and head is not full
    operands = 2 * 4 * head * item + 2 * 2 * 2 * head * item  # queries, and the new tokens
    result = 2 * 4 * head * item
    assert [cached + masks + operands + result] * 2 == [
        each.off_chip_traffic_bytes for each in reports
    ]


def test_cache_without_data() -> None:
    real, meta = (
        simulate(_decode(12, torch.float32, returns_cache=False, device=device), mode="timing")
        for device in ("cpu", "meta")
    )

    assert real.cycles == meta.cycles
    assert real.off_chip_traffic_bytes == meta.off_chip_traffic_bytes


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"dropout_p": 0.5}, "it draws random numbers: expected a module in evaluation mode"),
        (
            {"attn_mask": "computed"},
            "expected a mask that depends on no data, only on weights or integers",
        ),
    ],
)
def test_refused(arguments: dict[str, Any], expected: str) -> None:
    class Refused(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            given = dict(arguments)
            if "attn_mask" in given:
                given["attn_mask"] = torch.nn.functional.silu(x @ x.mT)
            return scaled_dot_product_attention(x, x, x, **given)

    with pytest.raises(ProgramError) as caught:
        from_torch(Refused(), (torch.ones(1, 1, 4, 4),))

    assert expected in str(caught.value)
    assert caught.value.file == __file__

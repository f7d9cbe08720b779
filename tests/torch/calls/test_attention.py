# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from fabric import Program, ProgramError
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


@examples(quick=7, deep=60)
@given(programs())
def test_attention_call_equals_pytorch(program: Program) -> None:
    check(program)


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


HEADS = some(2, 3, 4, 6), some(2, 3, 5, 6), some(2, 3, 5, 2)
BATCH = tuple(each[:, 0] for each in HEADS)
NESTED = tuple(torch.stack([each, each.flip(-2)], 1) for each in HEADS)


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
def test_attention_with_given_arguments_equals_pytorch(arguments: Any) -> None:
    given = arguments[-1] if isinstance(arguments[-1], dict) else {}
    single = Single(Schedule(tile_rows=2, tile_keys=2, attention_regions=2), lambda _: False)
    target = "aten.scaled_dot_product_attention.default"

    check(single.program(target, arguments[: len(arguments) - bool(given)], given))


@pytest.mark.parametrize(
    ("more", "names"), [((0.0, True), {}), ((), {"attn_mask": some(4, 5)}), ((), {"scale": 0.7})]
)
def test_flash_attention_equals_pytorch(more: Any, names: dict[str, Any]) -> None:
    target = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    single = Single(Schedule(tile_keys=2), lambda _: False)
    operands = HEADS[0], HEADS[1], HEADS[1] + 1

    check(single.program(target, (*operands, *more), names))


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
def test_dropout_and_computed_masks_are_refused(arguments: dict[str, Any], expected: str) -> None:
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

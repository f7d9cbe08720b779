"""Scaled dot-product attention as one kernel, with constant masks and heads that share keys."""

from __future__ import annotations

import math

import numpy as np

from operators.kernels.attention import plan_attention
from operators.kernels.attention_keys import Mask, causal
from operators.kernels.concatenate import parts_of
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.scaled_dot_product_attention.default")
def attention(importing: Importing, call: Call) -> View:
    return _attention(
        importing,
        call,
        mask=call.argument(3, "attn_mask"),
        is_causal=call.argument(5, "is_causal", False),
    )


@imports("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(importing: Importing, call: Call) -> tuple[View | None, ...]:
    """Plan attention. The second result, logarithms of sums of exponentials, is never read."""
    result = _attention(
        importing,
        call,
        mask=call.kwargs.get("attn_mask"),
        is_causal=call.argument(4, "is_causal", False),
    )
    return result, None


def _attention(importing: Importing, call: Call, *, mask: View | None, is_causal: bool) -> View:
    if is_causal and mask is not None:
        importing.unsupported("expected a mask or is_causal, not both")
    queries, keys, values = call.args[:3]
    # With other than four dimensions, all leading dimensions are batches with one head each.
    lead = queries.shape[:-2] if len(queries.shape) == 4 else (math.prod(queries.shape[:-2]), 1)
    if not call.kwargs.get("enable_gqa", False):
        outer = queries.shape[:-2]
        keys, values = (each.expanded((*outer, *each.shape[-2:])) for each in (keys, values))
    queries, keys, values = (
        each if len(each.shape) == 4 else each.reshaped((*lead, *each.shape[-2:]))
        for each in (queries, keys, values)
    )
    key_parts, value_parts = parts_of(keys, 2), parts_of(values, 2)
    if [each.shape[2] for each in key_parts] != [each.shape[2] for each in value_parts]:
        key_parts, value_parts = (keys,), (values,)
    visible = causal(queries.shape[2], keys.shape[2]) if is_causal else None
    if mask is not None:
        visible = _mask(importing, mask, call.args[0].shape[:-2], lead, keys.shape[2])
    scale = call.kwargs.get("scale")
    kernel = plan_attention(
        importing.name_of(call),
        queries,
        key_parts,
        value_parts,
        visible,
        scale=queries.shape[-1] ** -0.5 if scale is None else scale,
        dtype=call.result.dtype,
        schedule=importing.schedule,
    )
    (result,) = importing.add(kernel)
    return result.reshaped(call.result.shape)


def _mask(
    importing: Importing, mask: View, outer: tuple[int, ...], lead: tuple[int, ...], keys: int
) -> Mask:
    """Return a mask as [batch or 1, heads or 1, queries or 1, keys]; a 1 is broadcast.

    ``mask`` broadcasts to [*outer, queries, keys]. ``lead`` is ``outer`` as batch and heads.
    """
    if not isinstance(mask.source, Stored):
        importing.unsupported(
            "expected a mask that depends on no data, only on weights or integers"
        )
    shape = (1,) * (len(outer) + 2 - len(mask.shape)) + mask.shape
    if len(outer) == 2 or all(size == 1 for size in shape[:-2]):
        first = shape[:2] if len(outer) == 2 else (1, 1)
        wide = (*shape[:-1], keys)
    else:
        first, wide = lead, (*outer, shape[-2], keys)

    def array() -> np.ndarray:
        return np.broadcast_to(mask.array().reshape(shape), wide).reshape(whole)

    whole = (first[0], first[1], shape[-2], keys)
    return Mask(whole, array, mask.dtype, known=importing.known(mask) is not None)

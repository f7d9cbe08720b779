"""Calls that put tensors, and constants, one behind the other."""

from __future__ import annotations

from functools import partial

import numpy as np

from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.cat.default", "aten.concat.default")
def cat(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a dimension that is there."""
    parts = [each for each in call.args[0] if each.shape != (0,)]
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    return importing.joined(call, parts, dim)


@imports("aten.stack.default")
def stack(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a new dimension."""
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    parts = [each.reshaped((*each.shape[:dim], 1, *each.shape[dim:])) for each in call.args[0]]
    return importing.joined(call, parts, dim)


@imports("aten.constant_pad_nd.default", "aten.pad.default")
def pad(importing: Importing, call: Call) -> View:
    """A constant around a tensor; where there is less than nothing of it, a part of the tensor."""
    x, sizes = call.tensor(), list(call.args[1])
    value = call.argument(2 if "constant" in call.target else 3, "value", 0) or 0
    if "constant" not in call.target and call.argument(2, "mode", "constant") != "constant":
        importing.unsupported("expected a padding by a constant")
    for place in range(0, len(sizes), 2):
        dim = len(x.shape) - 1 - place // 2
        first, last = sizes[place : place + 2]
        kept = x.shape[dim] + min(first, 0) + min(last, 0)
        parts = [importing.part(call, x, dim, max(0, -first), kept)]
        if first > 0:
            parts.insert(0, _constant(x, dim, first, value))
        if last > 0:
            parts.append(_constant(x, dim, last, value))
        x = importing.joined(call, parts, dim)
    return x


def _constant(x: View, dim: int, size: int, value: float) -> View:
    """Return as much of a number as stands along ``dim`` of a tensor."""
    shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
    made = partial(np.full, shape, value, x.dtype)
    return View.of(Stored.of("padding", shape, x.dtype, made, known=True))

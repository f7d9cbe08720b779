"""Calls that put tensors one behind the other."""

from __future__ import annotations

import numpy as np

from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports, whole
from operators.torch.routes import NoElements


@imports("aten.cat.default", "aten.concat.default")
@imports("aten.cat.default", "aten.concat.default", of=NoElements)
def cat(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a dimension that is there."""
    parts = [whole(importing, each) for each in call.args[0] if 0 not in each.shape]
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    return importing.joined(call, parts, dim)


@imports("aten.stack.default")
def stack(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a new dimension."""
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    parts = [each.reshaped((*each.shape[:dim], 1, *each.shape[dim:])) for each in call.args[0]]
    return importing.joined(call, parts, dim)


@imports("aten.constant_pad_nd.default")
def constant_pad(importing: Importing, call: Call) -> View:
    """A number in front of a tensor and behind it, dimension by dimension, the last one first.

    Where fewer than no places are added, some of the tensor are left out.
    """
    x = call.tensor()
    added = call.args[1]
    for index, (before, behind) in enumerate(zip(added[::2], added[1::2], strict=True)):
        dim = len(x.shape) - 1 - index
        first = max(0, -before)
        count = x.shape[dim] - first - max(0, -behind)
        x = importing.part(call, x, dim, first, count)
        parts = [_filled(call, x, dim, before), x, _filled(call, x, dim, behind)]
        x = importing.joined(call, [each for each in parts if each.shape[dim] > 0], dim)
    return x


def _filled(call: Call, x: View, dim: int, count: int) -> View:
    """Return as many places of a dimension of ``x``, of one number."""
    shape = (*x.shape[:dim], max(0, count), *x.shape[dim + 1 :])
    value = call.argument(2, "value", 0)

    def made() -> np.ndarray:
        return np.full(shape, value, x.dtype)

    return View.of(Stored.of(f"{call.name}_filled", shape, x.dtype, made))

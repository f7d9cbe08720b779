"""Calls that put tensors one behind the other."""

from __future__ import annotations

from operators.kernels.tensors import View
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

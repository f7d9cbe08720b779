"""Products of rows with weights: linear layers, in all their spellings."""

from __future__ import annotations

from operators.kernels.linear import linear
from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["rows_times_weight"]


@imports("aten.linear.default")
def linear_call(importing: Importing, call: Call) -> View:
    """``x @ weight.T + bias``; the weight may be a vector."""
    x, weight = call.args[:2]
    bias = call.argument(2, "bias")
    if len(weight.shape) == 1:
        weight = weight.reshaped((1, *weight.shape))
    return rows_times_weight(importing, call, x, weight, bias)


def rows_times_weight(
    importing: Importing,
    call: Call,
    x: View,
    weight: View,
    bias: View | None = None,
    factors: tuple[float, float] = (1.0, 1.0),
) -> View:
    """Plan ``x @ weight.T`` with a bias, in the shape that the call returns.

    Args:
        importing: the model.
        call: what is imported.
        x: ``[*rows, K]``, or ``[K]``.
        weight: ``[N, K]``, in off-chip memory.
        bias: of a shape that broadcasts to the result's.
        factors: of the product, and of the bias.
    """
    if len(x.shape) == 1:
        x = x.reshaped((1, *x.shape))
    name, dtype = importing.name_of(call), call.result.dtype
    kernel = linear(name, x, weight, bias, dtype, importing.schedule, factors)
    (view,) = importing.add(kernel)
    return view.reshaped(call.result.shape)

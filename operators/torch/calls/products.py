"""Matrix products: of rows with weights where these are stored, else batch by batch."""

from __future__ import annotations

import math

from operators.kernels.linear import batched, linear
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["product"]


@imports("aten.linear.default")
def linear_layer(importing: Importing, call: Call) -> View:
    """``x @ weight.T + bias``; the weight may be a vector."""
    x, weight = call.args[:2]
    weight = weight.permuted(range(len(weight.shape))[::-1])
    return product(importing, call, x, weight, call.argument(2, "bias")).reshaped(call.result.shape)


@imports("aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default")
def matmul(importing: Importing, call: Call) -> View:
    """``a @ b``; vectors are a row on the left, a column on the right."""
    left, right = call.args
    return product(importing, call, left, right).reshaped(call.result.shape)


@imports("aten.dot.default", "aten.inner.default")
def dot(importing: Importing, call: Call) -> View:
    """Sums of products along the last dimensions of both."""
    left, right = call.args
    inner = left.shape[-1]
    rows, cols = math.prod(left.shape[:-1]), math.prod(right.shape[:-1])
    left, right = left.reshaped((rows, inner)), right.reshaped((cols, inner))
    return product(importing, call, left, right.permuted((1, 0))).reshaped(call.result.shape)


@imports("aten.outer.default", "aten.ger.default")
def outer(importing: Importing, call: Call) -> View:
    """Each number of a vector times each of another."""
    left, right = call.args
    left, right = left.reshaped((*left.shape, 1)), right.reshaped((1, *right.shape))
    return product(importing, call, left, right)


@imports("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def product_and_sum(importing: Importing, call: Call) -> View:
    """``beta * c + alpha * (a @ b)``."""
    added, left, right = call.args[:3]
    beta, alpha = call.kwargs.get("beta", 1), call.kwargs.get("alpha", 1)
    if not beta and alpha == 1:
        return product(importing, call, left, right).reshaped(call.result.shape)
    if not beta:
        importing.unsupported(f"alpha is {alpha} and beta 0: expected alpha to be 1 then")
    if call.target == "aten.addmv.default":
        added = added.reshaped((*added.shape, 1))
    return product(importing, call, left, right, added, (float(alpha), float(beta))).reshaped(
        call.result.shape
    )


def product(
    importing: Importing,
    call: Call,
    left: View,
    right: View,
    added: View | None = None,
    factors: tuple[float, float] = (1.0, 1.0),
) -> View:
    """Plan ``left @ right`` with something added: ``[*B, M, N]``.

    Args:
        importing: the model.
        call: what is imported.
        left: ``[*B, M, K]``, or ``[K]``.
        right: ``[*B, K, N]``, or ``[K]``; batches broadcast.
        added: of a shape that broadcasts to the result's.
        factors: of the product, and of what is added.
    """
    if len(left.shape) == 1:
        left = left.reshaped((1, *left.shape))
    if len(right.shape) == 1:
        right = right.reshaped((*right.shape, 1))
    name, dtype, schedule = importing.name_of(call), call.result.dtype, importing.schedule
    if len(right.shape) == 2 and isinstance(right.source, Stored):
        weight = right.permuted((1, 0))
        kernel = linear(name, left, weight, added, dtype, schedule, factors)
    else:
        if len(right.shape) > 2:
            batches = _broadcast(left.shape[:-2], right.shape[:-2])
            left = left.expanded((*batches, *left.shape[-2:]))
            right = right.expanded((*batches, *right.shape[-2:]))
        kernel = batched(name, left, right, added, dtype, schedule, factors)
    (view,) = importing.add(kernel)
    return view


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batches that two operands have together."""
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    return tuple(theirs if mine == 1 else mine for mine, theirs in pairs)

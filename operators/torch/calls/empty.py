"""Calls that have a tensor without elements among their arguments."""

from __future__ import annotations

from operators.kernels.tensors import View
from operators.torch.call import Call
from operators.torch.calls.elementwise import pointwise
from operators.torch.importing import Importing
from operators.torch.registry import imports, whole
from operators.torch.routed_rows import NoElements


@imports("aten.cat.default", "aten.concat.default", of=NoElements)
def cat(importing: Importing, call: Call) -> View:
    """Join the tensors that have elements."""
    parts = [whole(importing, each) for each in call.args[0] if 0 not in each.shape]
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    return importing.joined(call, parts, dim)


@imports("aten.index_put.default", "aten._unsafe_index_put.default", of=NoElements)
@imports("aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default", of=NoElements)
@imports("aten.scatter.reduce", "aten.scatter.value_reduce", of=NoElements)
@imports("aten.scatter_reduce.two", "aten.slice_scatter.default", of=NoElements)
def put(importing: Importing, call: Call) -> View:
    """Return the tensor unchanged, since no number is written."""
    return call.tensor()


@imports("aten.addmm.default", "aten.addmv.default", "aten.baddbmm.default", of=NoElements)
def added_product(importing: Importing, call: Call) -> View:
    """Return ``beta * c``: the product of matrices without elements is 0."""
    added = call.tensor().expanded(call.result.shape)
    return pointwise(importing, call, "mul", added, call.argument(3, "beta", 1))


@imports("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default", of=NoElements)
def embedding_bag(importing: Importing, call: Call) -> tuple[View | None, ...]:
    """Return 0 for each bag, since all bags are empty."""
    zeros = importing.filled(f"{call.name}_zeros", call.result.shape, call.result.dtype)
    return zeros, None, None, None

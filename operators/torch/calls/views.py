"""Views, which only change how the next reader walks the data, and calls that join tensors."""

from __future__ import annotations

import numpy as np

from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten._reshape_alias.default", "aten._unsafe_view.default", "aten.flatten.using_ints")
@imports("aten.reshape.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
@imports("aten.unflatten.int", "aten.unsqueeze.default", "aten.view.default")
@imports("aten.view_as.default")
def reshape(importing: Importing, call: Call) -> View:
    """The same elements under another shape."""
    return call.tensor().reshaped(call.result.shape)


@imports("aten.alias.default", "aten.clone.default", "aten.contiguous.default")
@imports("aten.detach.default", "aten.detach_.default", "aten.lift_fresh_copy.default")
@imports("aten.dropout.default", "aten.feature_dropout.default")
def same(importing: Importing, call: Call) -> View:
    """The tensor itself: no tensor is written to, so copies are not needed."""
    return call.tensor()


@imports("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(importing: Importing, call: Call) -> View:
    """Two dimensions exchanged."""
    x = call.tensor()
    first, second = call.args[1:]
    dims = list(range(len(x.shape)))
    if dims:
        dims[first], dims[second] = dims[second], dims[first]
    return x.permuted(dims)


@imports("aten.t.default", "aten.numpy_T.default", "aten.mT.default")
def turned(importing: Importing, call: Call) -> View:
    """A matrix with rows and columns exchanged; of more dimensions all, or the last two."""
    x = call.tensor()
    dims = list(range(len(x.shape)))
    if call.target == "aten.mT.default":
        return x.permuted((*dims[:-2], dims[-1], dims[-2]))
    return x.permuted(dims[::-1])


@imports("aten.permute.default")
def permute(importing: Importing, call: Call) -> View:
    x, dims = call.tensor(), call.args[1]
    return x.permuted([dim % len(x.shape) for dim in dims])


@imports("aten.movedim.int", "aten.movedim.intlist")
def movedim(importing: Importing, call: Call) -> View:
    """Some dimensions moved to other places."""
    x = call.tensor()
    source, target = call.args[1:]
    rank = len(x.shape)
    moved = [source] if isinstance(source, int) else source
    places = [target] if isinstance(target, int) else target
    taken = {place % rank: dim % rank for dim, place in zip(moved, places, strict=True)}
    others = iter(dim for dim in range(rank) if dim not in taken.values())
    return x.permuted([taken[place] if place in taken else next(others) for place in range(rank)])


@imports("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def expand(importing: Importing, call: Call) -> View:
    """Dimensions of size 1 seen often."""
    return call.tensor().expanded(call.result.shape)


@imports("aten.slice.Tensor", "aten.narrow.default")
def sliced(importing: Importing, call: Call) -> View:
    """Some places of a dimension, each as far from the next."""
    x = call.tensor()
    dim = call.argument(1, "dim", 0) % len(x.shape)
    first, step = call.argument(2, "start") or 0, 1
    if call.target == "aten.slice.Tensor":
        step = call.argument(4, "step", 1)
    size, count = x.shape[dim], call.result.shape[dim]
    first = min(max(first + size, 0), size) if first < 0 else min(first, size)
    return importing.taken(call, x, dim, range(first, first + step * count, step))


@imports("aten.select.int")
def select(importing: Importing, call: Call) -> View:
    """One place of a dimension, which is removed."""
    x = call.tensor()
    dim, index = call.args[1:]
    dim, size = dim % len(x.shape), x.shape[dim]
    part = importing.part(call, x, dim, index % size, 1)
    return part.reshaped(call.result.shape)


@imports("aten.chunk.default", "aten.split.Tensor", "aten.split.sizes")
@imports("aten.split_with_sizes.default", "aten.tensor_split.sections", "aten.unsafe_chunk.default")
@imports("aten.unsafe_split.Tensor")
def split(importing: Importing, call: Call) -> tuple[View, ...]:
    """Neighbouring parts of a dimension."""
    x = call.tensor()
    dim = call.argument(2, "dim", 0) % len(x.shape)
    parts, first = [], 0
    for spec in call.results:
        parts.append(importing.part(call, x, dim, first, spec.shape[dim]))
        first += spec.shape[dim]
    return tuple(parts)


@imports("aten.unbind.int")
def unbind(importing: Importing, call: Call) -> tuple[View, ...]:
    """The places of a dimension, which is removed."""
    x = call.tensor()
    dim = call.argument(1, "dim", 0) % len(x.shape)
    parts = (importing.part(call, x, dim, index, 1) for index in range(x.shape[dim]))
    return tuple(part.reshaped(spec.shape) for part, spec in zip(parts, call.results, strict=True))


@imports("aten.cat.default", "aten.concat.default")
def cat(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a dimension that is there."""
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    return importing.joined(call, call.args[0], dim)


@imports("aten.stack.default")
def stack(importing: Importing, call: Call) -> View:
    """Tensors one behind the other along a new dimension."""
    dim = call.argument(1, "dim", 0) % len(call.result.shape)
    parts = [each.reshaped((*each.shape[:dim], 1, *each.shape[dim:])) for each in call.args[0]]
    return importing.joined(call, parts, dim)


@imports("aten.constant_pad_nd.default")
def constant_pad(importing: Importing, call: Call) -> View:
    """A number in front of a tensor and behind it, dimension by dimension, the last one first.

    A negative number of places removes places of the tensor.
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
    shape = (*x.shape[:dim], max(0, count), *x.shape[dim + 1 :])
    value = call.argument(2, "value", 0)

    def made() -> np.ndarray:
        return np.full(shape, value, x.dtype)

    return View.of(Stored.of(f"{call.name}_filled", shape, x.dtype, made))

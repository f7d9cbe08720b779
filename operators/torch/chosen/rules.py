"""Rules for calls on tensors of which data choose some elements, such as ``x[mask]``.

A rule receives the call and its arguments. It returns None if the call needs the number of chosen
elements, or the place of an element among them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves, tree_map

from operators.torch.chosen.tensors import Choice, Chosen, Number, has_lengths

ARITHMETIC: Final = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.neg,
    operator.truediv,
    *(operator.ge, operator.gt, operator.le, operator.lt, operator.eq, operator.ne),
)


def arithmetic(n: Node, args: Sequence[Any]) -> Any:
    """Compute with integers that data decide."""
    if any(isinstance(each, Chosen) for each in args):
        return None
    return Number(n.target(*(_value(each) for each in args)))


def _value(argument: Any) -> Any:
    return argument.value if isinstance(argument, Number) else argument


def _plain(argument: Any) -> Any:
    return argument.tensor if isinstance(argument, Chosen) else _value(argument)


def pointwise(n: Node, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Compute element by element. The same elements are chosen as in the arguments."""
    chosen = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Chosen)]
    plain_args, plain_kwargs = tree_map(_plain, (args, kwargs))
    if not chosen:
        try:
            return n.target(*plain_args, **plain_kwargs)
        except RuntimeError:
            return None  # an argument must be a number, but data decide it
    first = chosen[0]
    if not _alike(chosen) or len({each.from_right for each in chosen}) > 1:
        return None
    others = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    if any(each.ndim >= -first.from_right and each.shape[first.from_right] != 1 for each in others):
        return None
    result = n.target(*plain_args, **plain_kwargs)
    return Chosen(result, first.choice, result.ndim + first.from_right)


def _alike(chosen: Sequence[Chosen]) -> bool:
    return all(each.choice.by == chosen[0].choice.by for each in chosen)


def _nonzero(n: Node, mask: Any) -> Any:
    if not isinstance(mask, torch.Tensor) or not mask.ndim:
        return None
    count = math.prod(mask.shape)
    places = torch.unravel_index(torch.arange(count, device=mask.device), tuple(mask.shape))
    valid = (mask if mask.dtype == torch.bool else mask != 0).reshape(-1)
    choice = Choice(valid, n.args[0])
    return Chosen(torch.stack(list(places), 1), choice, 0, is_place=mask.ndim == 1)


def _nonzero_columns(n: Node, mask: Any) -> Any:
    places = _nonzero(n, mask)
    return None if places is None else _unbind(n, places, 1)


def _unbind(_: Node, x: Any, dim: int = 0) -> Any:
    dim %= x.tensor.ndim
    if dim == x.dim:
        return None
    at = x.dim - (dim < x.dim)
    return tuple(replace(x, tensor=each, dim=at) for each in x.tensor.unbind(dim))


def _item_of(_: Node, several: Any, at: int) -> Any:
    return several[at]


def _index(n: Node, x: Any, places: Sequence[Any]) -> Any:
    if isinstance(x, Chosen):
        return _chosen_again(n, x, places)
    dims = [dim for dim, each in enumerate(places) if each is not None]
    if len(dims) != 1:
        return _columns(n, x, places)
    (dim,) = dims
    place = places[dim]
    if isinstance(place, Chosen):
        return _index_select(n, x, dim, place) if place.tensor.ndim == 1 else None
    if place.dtype not in (torch.bool, torch.uint8) or not place.ndim:
        return None
    flat = x.flatten(dim, dim + place.ndim - 1) if place.ndim > 1 else x
    return Chosen(flat, Choice(place.reshape(-1), n.args[1][dim]), dim)


def _chosen_again(n: Node, x: Chosen, places: Sequence[Any]) -> Any:
    """Choose among chosen places by a mask."""
    *whole, mask = places
    if x.dim != len(whole) or any(each is not None for each in whole):
        return None
    if not isinstance(mask, Chosen) or mask.tensor.dtype != torch.bool or mask.tensor.ndim != 1:
        return None
    if mask.choice.by != x.choice.by:
        return None
    choice = Choice(x.choice.valid & mask.tensor, n.args[1][x.dim])
    return replace(x, choice=choice, is_place=False)


def _columns(_: Node, x: Any, places: Sequence[Any]) -> Any:
    """Return the elements at several lists of places, such as the columns of ``nonzero``."""
    if any(not isinstance(each, Chosen) or each.tensor.ndim != 1 for each in places):
        return None
    if not _alike(places):
        return None
    return Chosen(x[tuple(each.tensor for each in places)], places[0].choice, 0)


def _index_select(_: Node, x: Any, dim: int, places: Any) -> Any:
    if isinstance(x, Chosen) or not isinstance(places, Chosen):
        return None
    dim %= x.ndim
    is_whole = places.is_place and places.choice.size == x.shape[dim]
    return Chosen(x if is_whole else x.index_select(dim, places.tensor), places.choice, dim)


def _masked_select(n: Node, x: Any, mask: Any) -> Any:
    if isinstance(x, Chosen) or isinstance(mask, Chosen):
        return None
    by = n.args[1] if mask.shape == x.shape else n
    x, mask = torch.broadcast_tensors(x, mask)
    return Chosen(x.reshape(-1), Choice(mask.reshape(-1), by), 0)


def _slice(n: Node, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if isinstance(x, Chosen):
        if dim % x.tensor.ndim == x.dim or has_lengths((start, end)):
            return None
        return replace(x, tensor=n.target(x.tensor, dim, start, end, step), is_place=False)
    if step != 1:
        return None
    dim %= x.ndim
    count = x.shape[dim]
    places = torch.arange(count, device=x.device)

    def place(end: Any) -> Any:
        value = _value(end)
        if isinstance(end, Number):
            return torch.where(value < 0, value + count, value)
        return value + count if value < 0 else value

    valid = torch.ones(count, dtype=torch.bool, device=x.device)
    if start is not None:
        valid = valid & (places >= place(start))
    if end is not None:
        valid = valid & (places < place(end))
    choice = Choice(valid, (count, *n.args[2:4]))
    if start in (None, 0) and isinstance(end, Number) and end.of is None:
        # The module or PyTorch has checked that the end lies within the dimension.
        end.of = choice
    return Chosen(x, choice, dim)


def _item(_: Node, x: Any) -> Any:
    return Number(x.reshape(())) if isinstance(x, torch.Tensor) else None


def _sym_size(_: Node, x: Any, dim: int) -> Any:
    if dim % x.tensor.ndim == x.dim:
        return Number(x.choice.count, x.choice)
    return x.tensor.shape[dim]


class _Sizes(NamedTuple):
    """Sizes, with a constant for the size that data decide; that size's dimension and choice."""

    sizes: list[Any]
    dim: int
    choice: Choice


def _sizes(shape: Sequence[Any]) -> _Sizes | None:
    dims = [dim for dim, size in enumerate(shape) if isinstance(size, Number)]
    choice = shape[dims[0]].of if len(dims) == 1 else None
    return None if choice is None else _Sizes(_constant(choice, shape), dims[0], choice)


def _constant(choice: Choice, shape: Sequence[Any]) -> list[Any]:
    return [choice.size if isinstance(size, Number) else size for size in shape]


def _view(n: Node, x: Any, shape: Sequence[Any], *_: Any, **__: Any) -> Any:
    if not isinstance(x, Chosen) or not _are_lengths(x, shape):
        return None
    before = math.prod(x.tensor.shape[: x.dim])
    result = n.target(x.tensor, _constant(x.choice, shape))
    for dim, size in enumerate(result.shape):
        if size == x.tensor.shape[x.dim] and math.prod(result.shape[:dim]) == before:
            return Chosen(result, x.choice, dim)
    return None


def _are_lengths(x: Chosen, shape: Sequence[Any]) -> bool:
    """Whether every size that data decide is the number of chosen elements of ``x``."""
    numbers = [size for size in shape if isinstance(size, Number)]
    return all(number.of is not None and number.of.by == x.choice.by for number in numbers)


def _expand(n: Node, x: Any, shape: Sequence[Any], **_: Any) -> Any:
    if isinstance(x, Chosen):
        if not _are_lengths(x, shape):
            return None
        result = n.target(x.tensor, _constant(x.choice, shape))
        return Chosen(result, x.choice, result.ndim + x.from_right)
    known = _sizes(shape)
    return None if known is None else Chosen(n.target(x, known.sizes), known.choice, known.dim)


def _filled(n: Node, shape: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    known = _sizes(shape)
    if known is None or has_lengths((args, kwargs)):
        return None
    return Chosen(n.target(known.sizes, *args, **kwargs), known.choice, known.dim)


def _arange(_: Node, end: Any, **kwargs: Any) -> Any:
    if not isinstance(end, Number) or end.of is None:
        return None
    places = end.of.valid.cumsum(0) - 1
    dtype = kwargs.get("dtype")
    return Chosen(places if dtype is None else places.to(dtype), end.of, 0)


def _unsqueeze(n: Node, x: Any, dim: int) -> Any:
    dim %= x.tensor.ndim + 1
    return Chosen(n.target(x.tensor, dim), x.choice, x.dim + (dim <= x.dim))


def _squeeze(n: Node, x: Any, dim: Any) -> Any:
    dims = [each % x.tensor.ndim for each in ([dim] if isinstance(dim, int) else dim)]
    if x.dim in dims:
        return None
    gone = sum(each < x.dim and x.tensor.shape[each] == 1 for each in dims)
    return replace(x, tensor=n.target(x.tensor, dim), dim=x.dim - gone)


def _select(n: Node, x: Any, dim: int, place: Any) -> Any:
    if not isinstance(x, Chosen):
        return torch.ops.aten.index.Tensor(x, [*[None] * (dim % x.ndim), place.value])
    dim %= x.tensor.ndim
    if dim == x.dim or has_lengths(place):
        return None
    # The only column of ``nonzero`` has the places themselves, so ``is_place`` stays.
    return replace(x, tensor=n.target(x.tensor, dim, place), dim=x.dim - (dim < x.dim))


def _permute(n: Node, x: Any, *dims: Any) -> Any:
    order = list(range(x.tensor.ndim))
    name = str(n.target)
    if "permute" in name:
        order = [each % x.tensor.ndim for each in dims[0]]
    else:
        first, second = (each % x.tensor.ndim for each in (dims or (0, x.tensor.ndim - 1)))
        order[first], order[second] = order[second], order[first]
    return Chosen(x.tensor.permute(order), x.choice, order.index(x.dim))


def _reduction(neutral: float | None) -> Callable[..., Any]:
    """Return the rule of a call that removes a dimension; ``neutral`` changes no result."""

    def rule(n: Node, x: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
        dims = _dims(x, dim)
        arguments = (dim, keepdim) if len(n.args) > 1 else ()
        if x.dim in dims:
            fill = _in_type(x, neutral) if neutral in (-math.inf, math.inf) else neutral
            return n.target(x.filled(fill), *arguments, **kwargs)
        removed = 0 if keepdim else sum(each < x.dim for each in dims)
        return Chosen(n.target(x.tensor, *arguments, **kwargs), x.choice, x.dim - removed)

    return rule


def _in_type(x: Chosen, infinity: float) -> float:
    """Return an infinity, or the least or greatest number if the type of ``x`` has no infinity."""
    if x.tensor.is_floating_point():
        return infinity
    if x.tensor.dtype == torch.bool:
        return infinity > 0
    info = torch.iinfo(x.tensor.dtype)
    return int(info.min if infinity < 0 else info.max)


def _dims(x: Chosen, dim: Any) -> list[int]:
    if dim is None or dim == []:
        return list(range(x.tensor.ndim))
    return [each % x.tensor.ndim for each in ([dim] if isinstance(dim, int) else dim)]


def _mean(n: Node, x: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    dims = _dims(x, dim)
    if x.dim not in dims:
        return _reduction(None)(n, x, dim, keepdim, **kwargs)
    others = math.prod(x.tensor.shape[each] for each in dims if each != x.dim)
    total = x.filled(0).sum(dims, keepdim, **kwargs)
    return total / (x.choice.count * others).to(total.dtype)


def _var(n: Node, x: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    dims = _dims(x, dim)
    if x.dim not in dims:
        return None
    others = math.prod(x.tensor.shape[each] for each in dims if each != x.dim)
    count = (x.choice.count * others).to(x.tensor.dtype)
    mean = x.filled(0).sum(dims, True) / count
    squares = replace(x, tensor=(x.tensor - mean).square()).filled(0).sum(dims, keepdim)
    variance = squares / (count - (1 if correction is None else correction))
    return variance.sqrt() if "std" in str(n.target) else variance


def _unbiased(n: Node, x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return _var(n, x, dim, correction=int(unbiased), keepdim=keepdim)


def _along(neutral: float) -> Callable[..., Any]:
    """Return the rule of a call that keeps the length of ``dim``; ``neutral`` changes no result."""

    def rule(n: Node, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
        tensor = x.filled(neutral) if dim % x.tensor.ndim == x.dim else x.tensor
        return replace(x, tensor=n.target(tensor, dim, *args, **kwargs), is_place=False)

    return rule


def _norm(n: Node, x: Any, shape: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    if has_lengths((shape, args)) or x.dim >= x.tensor.ndim - len(shape):
        return None
    return replace(x, tensor=n.target(x.tensor, shape, *args, **kwargs))


def _linear(n: Node, x: Any, *weights: Any) -> Any:
    if not isinstance(x, Chosen) or has_lengths(weights) or x.from_right == -1:
        return None
    return replace(x, tensor=n.target(x.tensor, *weights))


def _embedding(n: Node, table: Any, x: Any, *args: Any) -> Any:
    if isinstance(table, Chosen) or has_lengths(args):
        return None
    return replace(x, tensor=n.target(table, x.tensor, *args), is_place=False)


def _matmul(n: Node, a: Any, b: Any) -> Any:
    inner_of_b = -1 if _plain(b).ndim == 1 else -2
    summed = [
        isinstance(each, Chosen) and each.from_right == inner
        for each, inner in ((a, -1), (b, inner_of_b))
    ]
    if any(summed):
        # The sum is over the chosen elements, so both must have the same ones.
        if not all(summed) or a.choice.by != b.choice.by:
            return None
        return n.target(a.filled(0), b.filled(0))
    if isinstance(a, Chosen) and isinstance(b, Chosen):
        return None
    left, right = _plain(a), _plain(b)
    result = n.target(left, right)
    if isinstance(a, Chosen):
        return Chosen(result, a.choice, result.ndim + a.from_right + (right.ndim == 1))
    # A vector has no rows, so dimensions before the rows of b move one to the right.
    return Chosen(
        result, b.choice, result.ndim + b.from_right + (left.ndim == 1 and b.from_right < -2)
    )


def _attention(n: Node, q: Any, k: Any, v: Any, mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    others = mask is not None or (len(args) > 1 and args[1]) or kwargs.get("is_causal")
    keys = [each for each in (k, v) if isinstance(each, Chosen)]
    if others or kwargs.get("enable_gqa") or len(keys) == 1 or not _alike(keys):
        return None
    rows = [*keys, *([q] if isinstance(q, Chosen) else [])]
    if any(each.from_right != -2 for each in rows):
        return None
    left = _plain(q)
    if keys:
        scale = kwargs.get("scale") or 1 / math.sqrt(left.shape[-1])
        scores = left @ k.tensor.transpose(-2, -1) * scale
        # Keys that are not chosen get weight 0. Their values become 0, since 0 times NaN is NaN.
        weights = torch.where(k.choice.valid, scores, -math.inf).softmax(-1)
        result = weights @ v.filled(0)
    else:
        result = n.target(left, k, v, None, *args, **kwargs)
    return replace(q, tensor=result) if isinstance(q, Chosen) else result


def _index_add(n: Node, x: Any, dim: int, places: Any, source: Any, **kwargs: Any) -> Any:
    chosen = [each for each in (places, source) if isinstance(each, Chosen)]
    if isinstance(x, Chosen) or len(chosen) != 2 or not _alike(chosen):
        return None
    if source.dim != dim % x.ndim:
        return None
    return n.target(x, dim, places.tensor, source.filled(0), **kwargs)


def _index_put(
    n: Node, x: Any, places: Sequence[Any], values: Any, accumulate: bool = False
) -> Any:
    (place, *more) = places
    if isinstance(x, Chosen) or more:
        return None
    if not isinstance(place, Chosen):
        return None if accumulate else _put_at(n.args[1][0], x, place, values)
    if place.tensor.ndim != 1 or _is_of_others(values, place):
        return None
    if accumulate:
        if not isinstance(values, Chosen):
            values = Chosen(values.expand(place.choice.size, *x.shape[1:]), place.choice, 0)
        return n.target(x, [place.tensor], values.filled(0), True)
    if not place.is_place or place.choice.size != x.shape[0]:
        return None
    valid = place.choice.valid.view(-1, *[1] * (x.ndim - 1))
    return torch.where(valid, _plain(values), x)


def _is_of_others(values: Any, place: Chosen) -> bool:
    """Whether the values belong to other places than ``place``."""
    return isinstance(values, Chosen) and (values.choice.by != place.choice.by or values.dim != 0)


def _put_at(by: Any, x: Any, mask: Any, values: Any) -> Any:
    """Put back the elements that the mask ``by`` chose."""
    if not isinstance(values, Chosen) or values.choice.by != by or values.dim:
        return None
    shape = (*mask.shape, *[1] * (x.ndim - mask.ndim))
    return torch.where(mask.view(shape), values.tensor.view(x.shape), x)


def _masked_scatter(n: Node, x: Any, mask: Any, values: Any) -> Any:
    fits = isinstance(values, Chosen) and not isinstance(x, Chosen) and mask.shape == x.shape
    return _put_at(n.args[1], x, mask, values) if fits else None


def _cat(n: Node, tensors: Sequence[Any], dim: int = 0) -> Any:
    (first, *_) = chosen = [each for each in tensors if isinstance(each, Chosen)]
    dim %= first.tensor.ndim
    if len({each.dim for each in chosen}) > 1:
        return None
    result = n.target([_plain(each) for each in tensors], dim)
    if dim == first.dim:
        valid = [
            each.choice.valid
            if isinstance(each, Chosen)
            else torch.ones(each.shape[dim], dtype=torch.bool, device=each.device)
            for each in tensors
        ]
        return Chosen(result, Choice(torch.cat(valid), n), dim)
    if len(chosen) != len(tensors) or not _alike(chosen):
        return None
    return Chosen(result, first.choice, first.dim)


def _split(n: Node, x: Any, size: Any, dim: int = 0) -> Any:
    if has_lengths(size) or dim % x.tensor.ndim == x.dim:
        return None
    return tuple(replace(x, tensor=each) for each in n.target(x.tensor, size, dim))


def _vector_norm(
    n: Node, x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> Any:
    dims = _dims(x, dim)
    if x.dim not in dims or order <= 0:
        return None
    return n.target(x.filled(0), order, dims, keepdim, **kwargs)


def _same(n: Node, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute element by element, for calls that PyTorch does not tag as pointwise."""
    if has_lengths(args):
        return None
    is_place = x.is_place and "_like" not in str(n.target)
    return replace(x, tensor=n.target(x.tensor, *args, **kwargs), is_place=is_place)


BEGINS: Final = {
    "aten.nonzero.default",
    "aten.nonzero_numpy.default",
    "aten.where.default",
    "aten.index.Tensor",
    "aten.masked_select.default",
    "aten.item.default",
    "aten._local_scalar_dense.default",
}
"""Calls that choose places of a tensor by data, or read a number of a tensor."""

_CALLS: Final[tuple[tuple[Callable[..., Any], str], ...]] = (
    (_nonzero, "nonzero.default"),
    (_nonzero_columns, "nonzero_numpy.default where.default"),
    (_unbind, "unbind.int"),
    (_index, "index.Tensor"),
    (_index_select, "index_select.default"),
    (_masked_select, "masked_select.default"),
    (_slice, "slice.Tensor"),
    (_item, "item.default _local_scalar_dense.default"),
    (_sym_size, "sym_size.int"),
    (_view, "view.default reshape.default _unsafe_view.default"),
    (_expand, "expand.default"),
    (_filled, "zeros.default ones.default full.default"),
    (_arange, "arange.default"),
    (_unsqueeze, "unsqueeze.default"),
    (_squeeze, "squeeze.dim squeeze.dims"),
    (_select, "select.int"),
    (_permute, "permute.default transpose.int t.default numpy_T.default"),
    (_reduction(0), "sum.dim_IntList sum.default any.dim"),
    (_reduction(1), "prod.dim_int all.dim"),
    (_reduction(-math.inf), "amax.default max.default logsumexp.default"),
    (_reduction(math.inf), "amin.default min.default"),
    (_mean, "mean.dim mean.default"),
    (_var, "var.correction std.correction"),
    (_unbiased, "var.dim std.dim"),
    (_along(-math.inf), "softmax.int _softmax.default log_softmax.int"),
    (_along(0), "cumsum.default"),
    (_norm, "layer_norm.default rms_norm.default"),
    (_linear, "linear.default"),
    (_embedding, "embedding.default"),
    (_matmul, "matmul.default mm.default bmm.default mv.default"),
    (_attention, "scaled_dot_product_attention.default"),
    (_index_add, "index_add.default"),
    (_index_put, "index_put.default"),
    (_masked_scatter, "masked_scatter.default"),
    (_cat, "cat.default"),
    (_split, "split.Tensor split_with_sizes.default chunk.default"),
    (_vector_norm, "linalg_vector_norm.default"),
    (
        _same,
        "contiguous.default _to_copy.default to.dtype clone.default "
        "zeros_like.default ones_like.default full_like.default softplus.default",
    ),
)
"""Each rule with the calls of aten that it computes."""

RULES: Final = {f"aten.{name}": rule for rule, names in _CALLS for name in names.split()}
RULES[str(operator.getitem)] = _item_of

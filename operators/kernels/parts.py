"""The parts of a tensor that was put together, seen as the whole is seen."""

from __future__ import annotations

import math

from operators.kernels.concatenate import Concatenated
from operators.kernels.steps import Expanded, Permuted, Reshaped, Sliced
from operators.kernels.tensors import View

__all__ = ["parts_of"]


def parts_of(view: View, dim: int) -> tuple[View, ...]:
    """Return the parts that ``view`` is put together of along its dimension ``dim``.

    Only the view itself where it is of one piece, or was put together along another dimension.
    """
    source = view.source
    if not isinstance(source, Concatenated):
        return (view,)
    along, parts = source.dim, source.parts
    for step, before in view.steps:
        match step:
            case Permuted(dims):
                along, parts = dims.index(along), tuple(each.permuted(dims) for each in parts)
            case Expanded(shape):
                place = along + len(shape) - len(before)
                parts = tuple(each.expanded(_with(shape, place, each, along)) for each in parts)
                along = place
            case Reshaped(shape):
                kept = _kept(before, along, shape)
                if kept is None:
                    return (view,)
                parts = tuple(each.reshaped(_with(shape, kept, each, along)) for each in parts)
                along = kept
            case Sliced(cut, first, count):
                if cut == along:
                    return (view,)
                parts = tuple(each.sliced(cut, first, count) for each in parts)
    return parts if along == dim else (view,)


def _with(shape: tuple[int, ...], dim: int, part: View, along: int) -> tuple[int, ...]:
    """Return ``shape`` with a part's size along ``dim``."""
    return (*shape[:dim], part.shape[along], *shape[dim + 1 :])


def _kept(before: tuple[int, ...], dim: int, after: tuple[int, ...]) -> int | None:
    """Return which dimension of a reshaped tensor is dimension ``dim`` of the tensor."""
    outside = math.prod(before[:dim])
    for place, size in enumerate(after):
        if size == before[dim] and math.prod(after[:place]) == outside:
            return place
    return None

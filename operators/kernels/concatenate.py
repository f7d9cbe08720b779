"""Concatenate: tensors one behind the other, tile by tile, and access to the parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Stream
from operators.kernels.following import rows_layout
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Expanded, Permuted, Reshaped, Sliced, View
from operators.reassemble import Reassemble
from operators.shape import redimensioned
from operators.sources import Selectors


@dataclass(frozen=True, eq=False)
class Concatenated(Computed):
    """Tensors one behind the other along ``dim``; readers may read each part directly."""

    parts: tuple[View, ...]
    dim: int


class Concatenate(Kernel):
    """A Reassemble that takes the tiles of each part in the order of the whole."""

    family: ClassVar = "concatenation"

    @staticmethod
    def of(name: str, parts: Sequence[View], dim: int, schedule: Schedule) -> Concatenate:
        sizes = [part.shape[dim] for part in parts]
        lead, last = parts[0].shape[:dim], parts[0].shape[dim + 1 :]
        tile = list(rows_layout(parts[0].shape, schedule.tile_rows, parts[0].shape[-1]).tile)
        tile[dim] = math.gcd(*sizes, tile[dim])
        tile[:dim] = [1] * dim
        # Tiles are contiguous only along whole dimensions, so dimensions before ``dim`` get size 1.
        layouts = _walks(parts, tuple(tile))
        whole = Layout.tiled((*lead, sum(sizes), *last), layouts[0].tile)
        result = Concatenated(name, whole.shape, parts[0].dtype, whole, tuple(parts), dim)
        operands = [Operand(*each) for each in zip(parts, layouts, strict=True)]
        return Concatenate(name, operands, result)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Concatenated)
        layout, dim = result.layout, result.dim
        ends = list(accumulate(each.shape[dim] for each in result.parts))
        choice = np.searchsorted(ends, layout.offsets()[:, dim], side="right")
        route = Selectors(choice[:, None], width=len(ends))()
        streams = [
            redimensioned(each, (part.layout.count,))
            for each, part in zip(inputs, self.operands, strict=True)
            if isinstance(each, Stream) and part.layout is not None
        ]
        whole = Reassemble(name=self.name)(streams, redimensioned(route, (layout.count,)))
        return (redimensioned(whole, (1, *layout.trips)),)


def _walks(parts: Sequence[View], tile: tuple[int, ...]) -> list[Layout]:
    """Return a layout for each part, with one tile size in which all parts can be read."""
    layouts = [Layout.tiled(part.shape, tile) for part in parts]
    for dim in range(len(tile)):
        if all(each.pull(layout) is not None for each, layout in zip(parts, layouts, strict=True)):
            break
        tile = (*tile[:dim], 1, *tile[dim + 1 :])
        layouts = [Layout.tiled(part.shape, tile) for part in parts]
    return layouts


def parts_of(view: View, dim: int) -> tuple[View, ...]:
    """Return the parts of which ``view`` consists along ``dim``; the view if it has no parts."""
    source = view.source
    if not isinstance(source, Concatenated):
        return (view,)
    along, parts = source.dim, source.parts
    for step, before in view.steps:
        match step:
            case Permuted(dims):
                along, parts = dims.index(along), tuple(part.permuted(dims) for part in parts)
            case Expanded(shape):
                place = along + len(shape) - len(before)
                parts = tuple(part.expanded(_with(shape, place, part, along)) for part in parts)
                along = place
            case Reshaped(shape):
                kept = _kept(before, along, shape)
                if kept is None:
                    return (view,)
                parts = tuple(part.reshaped(_with(shape, kept, part, along)) for part in parts)
                along = kept
            case Sliced(cut, first, count):
                if cut == along:
                    return (view,)
                parts = tuple(part.sliced(cut, first, count) for part in parts)
    return parts if along == dim else (view,)


def _with(shape: tuple[int, ...], dim: int, part: View, along: int) -> tuple[int, ...]:
    return (*shape[:dim], part.shape[along], *shape[dim + 1 :])


def _kept(before: tuple[int, ...], dim: int, after: tuple[int, ...]) -> int | None:
    """Return the dimension of a reshaped tensor that was ``dim`` before; None if it is split."""
    outside = math.prod(before[:dim])
    for place, size in enumerate(after):
        if size == before[dim] and math.prod(after[:place]) == outside:
            return place
    return None

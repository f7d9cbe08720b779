"""Stored tensors as kernels read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fabric import Layout, Stream
from operators.convert import Convert
from operators.kernels.kernel import Operand
from operators.kernels.rearranging import rearranged
from operators.kernels.tensors import Stored
from operators.streams.dimensions import redimensioned
from operators.through_memory import loaded

__all__ = ["load", "times_loaded"]


def load(name: str, operand: Operand) -> Stream:
    """Return a stored operand as its kernel reads it, ``[1, *layout.trips]`` of tiles."""
    source, layout = operand.view.source, operand.layout
    assert isinstance(source, Stored)
    assert layout is not None
    pulled = operand.pulled()
    once = _loaded(operand, pulled.layout)
    stream = loaded(source.tensor, once, name=name)
    if once != pulled.layout:
        stream = Convert(pulled.layout)(stream)
    if not operand.rearranges:
        stream = rearranged(stream, pulled.places, broadcasts=operand.broadcasts)
    return redimensioned(stream, (1, *layout.trips))


def times_loaded(operand: Operand, *, spilled: bool) -> int:
    """Return how often the tiles of a stored operand are loaded.

    Args:
        operand: of a kernel.
        spilled: there is no room to keep it.
    """
    layout = operand.pulled().layout
    loaded = _loaded(replace(operand, resident=operand.resident and not spilled), layout)
    return loaded.count // _once(layout).count


def _loaded(operand: Operand, layout: Layout) -> Layout:
    """Return the walk of what an operand is loaded of, which is read in ``layout``."""
    return _once(layout) if operand.resident else _innermost_once(layout)


def _once(layout: Layout) -> Layout:
    """Return the layout without the loops that read again."""
    return _without(layout, lambda loop: layout.map[loop] is None)


def _innermost_once(layout: Layout) -> Layout:
    """Return the layout without the loops that read the same tile again at once."""
    last = max((loop for loop, dim in enumerate(layout.map) if dim is not None), default=-1)
    return _without(layout, lambda loop: loop > last)


def _without(layout: Layout, dropped: Callable[[int], bool]) -> Layout:
    kept = [loop for loop in range(len(layout.trips)) if not dropped(loop)]
    return layout.nested([layout.loops[loop] for loop in kept])

"""The sizes a run had: symbols are bound by counting what the channels carried."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fabric.dims import Dim, free_symbols
from fabric.stream import Feedback
from fabric.symbolic.substitution import Size, Substitution, followed

if TYPE_CHECKING:
    from fabric.machine import Machine

__all__ = ["measured_sizes"]


def measured_sizes(machine: Machine) -> dict[Any, Size]:
    """Return a size for every symbol of the program's streams; 0 where no channel shows it.

    The size of a ragged symbol is the mean over its groups.
    """
    program = machine.plan.program
    shapes = _carried(machine)
    sizes: dict[Any, Size] = {}
    # A shape with two unknowns tells one of them when another channel has told the other; where
    # no channel does, only their product counts.
    while shapes:
        waiting = [each for each in shapes if not _bind(sizes, *each)]
        if len(waiting) == len(shapes) and not _choose(sizes, waiting):
            break
        shapes = waiting
    sizes = followed(sizes, program)
    for node in machine.plan.nodes:
        for type_ in (*node.input_types, *node.output_types):
            for symbol in {symbol for dim in type_.shape for symbol in free_symbols(dim)}:
                sizes.setdefault(symbol, 0)
    return followed(sizes, program)


def _carried(machine: Machine) -> list[tuple[tuple[Dim, ...], int]]:
    """Return the shapes that have symbols, each with the elements its channel carried."""
    shapes = []
    for edge, channel in zip(machine.plan.edges, machine.channels, strict=True):
        shapes.append((edge.type.shape, channel.elements))
        stream = edge.consumer.inputs[edge.input]
        if isinstance(stream, Feedback):
            # Its reader knows it under the shape that was declared.
            shapes.append((stream.shape, channel.elements))
    return [each for each in shapes if not all(isinstance(dim, int) for dim in each[0])]


def _choose(sizes: dict[Any, Size], shapes: list[tuple[tuple[Dim, ...], int]]) -> bool:
    """Set one of a shape's unknowns to 1 where it has elements; return whether one was."""
    for shape, elements in shapes:
        unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
        if (
            elements
            and len(unknown) > 1
            and all(getattr(dim, "is_Symbol", False) for dim in unknown)
        ):
            sizes[unknown[0]] = 1
            return True
    return False


def _bind(sizes: dict[Any, Size], shape: tuple[Dim, ...], elements: int) -> bool:
    """Learn from a channel with this shape; return whether it can teach nothing more."""
    unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
    if not unknown:
        return True
    *others, last = unknown
    if others or not getattr(last, "is_Symbol", False):
        return False
    substitution = Substitution(sizes)
    known = math.prod(substitution.dim(dim) for dim in shape if dim is not last)
    if not known:
        return False
    size = Fraction(elements) / known
    sizes[last] = int(size) if size.denominator == 1 else size
    return True

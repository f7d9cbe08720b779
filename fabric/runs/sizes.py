"""The sizes a run had: symbols are bound by counting what the channels carried."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from fabric.symbolic.substitution import Size, Substitution, followed
from fabric.values.dims import Dim, Symbol, free_symbols
from fabric.wiring.stream import Feedback

if TYPE_CHECKING:
    from fabric.state.run_state import RunState
    from fabric.wiring.elaborate import Plan

__all__ = ["Measured", "measured_sizes"]


class Measured(NamedTuple):
    """The sizes of a run.

    Attributes:
        sizes: of every symbol of the program's streams; 0 where no channel shows it. The size of
            a ragged symbol is the mean over its groups.
        guessed: symbols of which only a product with others is known, and what follows from them.
    """

    sizes: dict[Symbol, Size]
    guessed: frozenset[Symbol]


def measured_sizes(plan: Plan, state: RunState) -> Measured:
    """Count what the channels of a run of ``plan`` carried."""
    program = plan.program
    shapes = _carried(plan, state)
    sizes: dict[Symbol, Size] = {}
    guessed: set[Symbol] = set()
    # A shape with two unknowns tells one of them when another channel has told the other; where
    # no channel does, only their product counts.
    while shapes:
        waiting = [each for each in shapes if not _bind(sizes, guessed, *each)]
        if len(waiting) == len(shapes) and not _choose(sizes, guessed, waiting):
            break
        shapes = waiting
    sizes = followed(sizes, program)
    for node in plan.nodes:
        for type_ in (*node.input_types, *node.output_types):
            for symbol in {symbol for dim in type_.shape for symbol in free_symbols(dim)}:
                sizes.setdefault(symbol, 0)
    for symbol, stands_for in program.absorbed.items():
        if free_symbols(stands_for) & guessed:
            guessed.add(symbol)
    return Measured(followed(sizes, program), frozenset(guessed))


def _carried(plan: Plan, state: RunState) -> list[tuple[tuple[Dim, ...], int]]:
    """Return the shapes that have symbols, each with the elements its channel carried."""
    shapes = []
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        shapes.append((edge.type.shape, channel.taken))
        stream = edge.consumer.inputs[edge.input]
        if isinstance(stream, Feedback):
            # Its reader knows it under the shape that was declared.
            shapes.append((stream.shape, channel.taken))
    return [each for each in shapes if not all(isinstance(dim, int) for dim in each[0])]


def _choose(
    sizes: dict[Symbol, Size], guessed: set[Symbol], shapes: list[tuple[tuple[Dim, ...], int]]
) -> bool:
    """Set one of a shape's unknowns to 1 where it has elements; return whether one was."""
    for shape, elements in shapes:
        unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
        symbols = [dim for dim in unknown if isinstance(dim, Symbol)]
        if elements and len(unknown) > 1 and symbols == unknown:
            sizes[symbols[0]] = 1
            guessed.add(symbols[0])
            return True
    return False


def _bind(
    sizes: dict[Symbol, Size], guessed: set[Symbol], shape: tuple[Dim, ...], elements: int
) -> bool:
    """Learn from a channel with this shape; return whether it can teach nothing more."""
    unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
    if not unknown:
        return True
    *others, last = unknown
    if others or not isinstance(last, Symbol):
        return False
    substitution = Substitution(sizes)
    known = math.prod(substitution.dim(dim) for dim in shape if dim is not last)
    if not known:
        return False
    size = Fraction(elements) / known
    sizes[last] = int(size) if size.denominator == 1 else size
    if any(free_symbols(dim) & guessed for dim in shape):
        guessed.add(last)
    return True

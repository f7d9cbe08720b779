"""The sizes a run had: symbols are bound by counting what the channels carried."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.symbolic.substitution import Size, Substitution, followed
from fabric.values.dims import Dim, Symbol, free_symbols
from fabric.wiring.stream import Feedback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.state.run_state import RunState
    from fabric.wiring.elaborate import Plan

__all__ = ["Measured", "measured_sizes"]


class Measured(NamedTuple):
    """The sizes of a run.

    Attributes:
        sizes: of every symbol of the program's streams; where no channel shows it, as the program
            binds it, or 0. The size of a ragged symbol is the mean over its groups.
        guessed: symbols of which only a product with others is known, and what follows from them.
        shown: symbols of which the channels tell the size; those that are guessed are not among
            them.
    """

    sizes: dict[Symbol, Size]
    guessed: frozenset[Symbol]
    shown: frozenset[Symbol]


class _Carried(NamedTuple):
    """A channel's shape and the elements it carried."""

    shape: tuple[Dim, ...]
    elements: int


def measured_sizes(plan: Plan, state: RunState) -> Measured:
    """Count what the channels of a run of ``plan`` carried."""
    program = plan.program
    bound = followed(program.sizes, program)
    learned = _Learned(bound)
    channels = _carried(plan, state)
    # A shape with two unknowns tells one of them when another channel has told the other; where
    # no channel does, only their product counts.
    while channels:
        waiting = [each for each in channels if not learned.bind(each)]
        if len(waiting) == len(channels) and not learned.choose(waiting):
            break
        channels = waiting
    sizes, guessed = followed(learned.sizes, program), learned.guessed
    shown = frozenset(sizes)
    streams = (stream for node in plan.nodes for stream in (*node.inputs, *node.outputs))
    types = {id(stream.type): stream.type for stream in streams}
    for type_ in types.values():
        for dim in learned.unknown(type_.shape):
            for symbol in free_symbols(dim):
                sizes.setdefault(symbol, bound.get(symbol, 0))
    # Sizes inside of buffers and tiles that no channel counts: the mean over all groups stands
    # for that over the groups, or the repeated ones, that a stream has.
    for symbol, of_all in program.renewed.items():
        if symbol not in sizes and free_symbols(of_all) <= sizes.keys():
            sizes[symbol] = Substitution(sizes).dim(of_all)
            guessed.add(symbol)
    for symbol, stands_for in program.absorbed.items():
        if free_symbols(stands_for) & guessed:
            guessed.add(symbol)
    return Measured(followed(sizes, program), frozenset(guessed), shown - guessed)


def _carried(plan: Plan, state: RunState) -> list[_Carried]:
    carried = []
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        carried.append(_Carried(edge.type.shape, channel.taken))
        stream = edge.consumer.inputs[edge.input]
        if isinstance(stream, Feedback):
            # Its reader knows it under the shape that was declared.
            carried.append(_Carried(stream.shape, channel.taken))
    return carried


class _Learned:
    """What the channels that were looked at have told.

    Attributes:
        sizes: of symbols.
        guessed: see ``Measured``.
    """

    def __init__(self, bound: Mapping[Symbol, Size]) -> None:
        """Know nothing but what the program binds, which a run may contradict."""
        self._bound: Final = bound
        self.sizes: Final[dict[Symbol, Size]] = {}
        self.guessed: Final[set[Symbol]] = set()
        self._known: Final[dict[int, Dim]] = {}

    def bind(self, channel: _Carried) -> bool:
        """Learn from a channel; return whether it can teach nothing more."""
        unknown = self.unknown(channel.shape)
        if not unknown:
            return True
        *others, last = unknown
        if others or not isinstance(last, Symbol):
            return False
        substitution = Substitution(self.sizes)
        known = math.prod(substitution.dim(dim) for dim in channel.shape if dim is not last)
        if not known:
            return False
        size = Fraction(channel.elements) / known
        self.sizes[last] = int(size) if size.denominator == 1 else size
        if any(free_symbols(dim) & self.guessed for dim in channel.shape):
            self.guessed.add(last)
        return True

    def choose(self, channels: list[_Carried]) -> bool:
        """Guess one of a shape's unknowns where it has elements; return whether one was.

        It is what the program binds it to, or else 1.
        """
        for shape, elements in channels:
            unknown = self.unknown(shape)
            symbols = [dim for dim in unknown if isinstance(dim, Symbol)]
            if elements and len(unknown) > 1 and symbols == unknown:
                chosen = next(filter(self._bound.get, symbols), symbols[0])
                self.sizes[chosen] = self._bound.get(chosen) or 1
                self.guessed.add(chosen)
                return True
        return False

    def unknown(self, shape: tuple[Dim, ...]) -> list[Dim]:
        """Return the dimensions of ``shape`` with symbols of which the size is not known."""
        known = self._known
        return [
            dim
            for dim in shape
            if dim.__class__ is not int and id(dim) not in known and not self._is_known(dim)
        ]

    def _is_known(self, dim: Dim) -> bool:
        if not free_symbols(dim) <= self.sizes.keys():
            return False
        # Most are asked for again. The dimension is kept, so that its identity stays its own.
        self._known[id(dim)] = dim
        return True

"""What the shapes of a program tell of channels: how many elements they should carry in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.stream import Feedback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fabric.graph.values.dims import Dim
    from fabric.graph.values.expression import Expression
    from fabric.graph.wiring.elaborate import Edge, Plan
    from fabric.messages.telling.place import Place
    from fabric.timing.state.run_state import ChannelState, RunState

__all__ = ["UNTOLD", "Expected", "expected_of"]


class Expected(NamedTuple):
    """What is told of one channel.

    Attributes:
        in_all: how many elements it should carry: a number, or an expression.
        shape: of its stream.
        per_output: how many of its elements make one of its consumer's first output; None where
            the shapes do not say that it is a whole number above 1.
        feedback: where the ``Feedback`` that it closes was declared; None where it closes none.
    """

    in_all: int | str
    shape: str
    per_output: int | None
    feedback: Place | None


UNTOLD: Final = Expected("unknown", "", None, None)
"""Where nobody has looked at the shapes."""


def expected_of(
    plan: Plan, state: RunState, channels: Iterable[ChannelState]
) -> Mapping[int, Expected]:
    """Return what the shapes of ``plan`` tell of ``channels``, by their numbers.

    Symbols have values where a stream that has ended shows them in ``state``.
    """
    sizes = _Sizes(plan, state)
    return {channel.number: _expected(plan.edges[channel.number], sizes) for channel in channels}


def _expected(edge: Edge, sizes: _Sizes) -> Expected:
    shape = edge.type.shape
    count: Dim = 1
    for dim in shape:
        count *= sizes.valued(dim)
    stream = edge.consumer.inputs[edge.input]
    return Expected(
        count if isinstance(count, int) else str(count),
        f"[{', '.join(map(str, shape))}]",
        _per_output(edge),
        stream.place if isinstance(stream, Feedback) else None,
    )


def _per_output(edge: Edge) -> int | None:
    outputs = edge.consumer.outputs
    if not outputs:
        return None
    read, made = edge.consumer.inputs[edge.input].type.count, outputs[0].type.count
    if isinstance(read, int) and isinstance(made, int):
        ratio = read // made if made and read % made == 0 else 0
    elif made == 0:
        return None
    else:
        quotient = read / made
        ratio = quotient if isinstance(quotient, int) else 0
    return ratio if ratio > 1 else None


class _Sizes:
    """Sizes of symbols that streams which have ended show."""

    def __init__(self, plan: Plan, state: RunState) -> None:
        self._values: dict[Symbol, int] = {}
        ended = [
            (edge.type.shape, channel.sent)
            for edge, channel in zip(plan.edges, state.channels, strict=True)
            if channel.closed_cycle is not None
        ]
        while sum(self._bind(shape, count) for shape, count in ended):
            pass

    def valued(self, dim: Dim) -> Dim:
        """Return ``dim`` with the symbols that have values replaced by them."""
        if isinstance(dim, int):
            return dim
        return dim.with_sizes(self._values)

    def _bind(self, shape: tuple[Dim, ...], count: int) -> bool:
        """Give a value to a symbol that stands alone in ``shape``; whether that was new."""
        open_dims: list[Expression] = []
        known = 1
        for dim in map(self.valued, shape):
            if isinstance(dim, int):
                known *= dim
            else:
                open_dims.append(dim)
        if (
            len(open_dims) != 1
            or not isinstance(open_dims[0], Symbol)
            or not known
            or count % known
        ):
            return False
        self._values[open_dims[0]] = count // known
        return True

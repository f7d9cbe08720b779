"""How many elements channels have carried, and how many they should carry in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fabric.deadlock.document import ChannelState
from fabric.values.value import Empty
from fabric.wiring.stream import Feedback

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.engine.channel import Channel
    from fabric.engine.unit import Unit
    from fabric.machine.machine import Machine
    from fabric.telling.place import Place
    from fabric.values.dims import Dim
    from fabric.wiring.elaborate import Edge

__all__ = ["Tokens", "sent"]


def sent(channel: Channel) -> int:
    """Return how many elements were sent, bare stops left out."""
    held = sum(element[0].__class__ is not Empty for _, element in channel.queue)
    return channel.elements + held


class Tokens:
    """Counts of one machine; symbols have values where a stream that ended shows them."""

    def __init__(self, machine: Machine) -> None:
        """Read the sizes of streams that have ended."""
        self.machine: Final = machine
        self._edges: dict[Channel, Edge] = dict(
            zip(machine.channels, machine.plan.edges, strict=True)
        )
        self._values: dict[Any, int] = {}
        ended = [
            (self._shape(channel), sent(channel))
            for channel in machine.channels
            if channel.closed_cycle is not None
        ]
        while sum(self._bind(shape, count) for shape, count in ended):
            pass

    def edge(self, channel: Channel) -> Edge:
        """Return the edge of the plan that ``channel`` stands for."""
        return self._edges[channel]

    def expected(self, channel: Channel) -> Dim:
        """Return how many elements ``channel`` should carry: a number, or an expression."""
        count: Dim = 1
        for dim in self._shape(channel):
            count *= self._valued(dim)
        return count

    def feedback(self, channel: Channel) -> Place | None:
        """Return where the ``Feedback`` that ``channel`` closes was declared; else None."""
        edge = self._edges[channel]
        stream = edge.consumer.inputs[edge.input]
        return stream.place if isinstance(stream, Feedback) else None

    def feedbacks(self, loop: Iterable[Unit]) -> tuple[Feedback, ...]:
        """Return what closes a loop of units that wait to receive, in the order of its waits."""
        found: dict[Feedback, None] = {}
        for unit in loop:
            for channel in unit.wait.channels if unit.wait is not None else ():
                edge = self._edges[channel]
                stream = edge.consumer.inputs[edge.input]
                if isinstance(stream, Feedback):
                    found[stream] = None
        return tuple(found)

    def per_output(self, channel: Channel) -> int | None:
        """Return how many elements of ``channel`` make one of its consumer's first output.

        None where the shapes do not say that it is a whole number above 1.
        """
        edge = self._edges[channel]
        outputs = edge.consumer.outputs
        if not outputs:
            return None
        read, made = edge.consumer.inputs[edge.input].type.count, outputs[0].type.count
        if isinstance(read, int) and isinstance(made, int):
            ratio = read // made if made and read % made == 0 else 0
        elif made == 0:
            return None
        else:
            quotient: Any = read / made
            ratio = int(quotient) if quotient.is_Integer else 0
        return ratio if ratio > 1 else None

    def state(self, channel: Channel) -> ChannelState:
        """Return ``channel`` as the report has it."""
        edge = self._edges[channel]
        return ChannelState(
            name=channel.name,
            option=edge.key,
            depth=channel.depth,
            held=len(channel.queue),
            sent=sent(channel),
            taken=channel.elements,
            expected=str(self.expected(channel)),
            shape=f"[{', '.join(map(str, self._shape(channel)))}]",
            ended_cycle=channel.closed_cycle,
        )

    def _shape(self, channel: Channel) -> tuple[Dim, ...]:
        edge = self._edges[channel]
        return edge.producer.outputs[edge.output].type.shape

    def _bind(self, shape: tuple[Dim, ...], count: int) -> bool:
        """Give a value to a symbol that stands alone in ``shape``; whether that was new."""
        open_dims: list[Any] = []
        known = 1
        for dim in map(self._valued, shape):
            if isinstance(dim, int):
                known *= dim
            else:
                open_dims.append(dim)
        if len(open_dims) != 1 or not open_dims[0].is_Symbol or not known or count % known:
            return False
        self._values[open_dims[0]] = count // known
        return True

    def _valued(self, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        value: Any = dim.xreplace({each: self._number(each) for each in dim.free_symbols})
        return int(value) if value.is_Integer else value

    def _number(self, symbol: Any) -> Any:
        import sympy

        return sympy.Integer(self._values[symbol]) if symbol in self._values else symbol

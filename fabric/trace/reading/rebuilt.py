"""The machine as its trace left it, rebuilt far enough to say why it does not move."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from typing_extensions import override

from fabric.deadlock.document import ChannelState
from fabric.deadlock.tokens import sent
from fabric.engine.channel import Channel
from fabric.engine.unit import Unit, Wait
from fabric.telling.causes import Operation
from fabric.telling.place import Place
from fabric.values.stream_type import BufferType, TileType
from fabric.values.value import ADDRESS_DTYPE, BareStop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.deadlock.tokens import Tokens
    from fabric.engine.clock import VirtualClock
    from fabric.machine.machine import Machine
    from fabric.trace.reading.reader import Trace
    from fabric.wiring.elaborate import Edge

__all__ = ["rebuilt"]


class _RecordedChannel(Channel):
    """A channel with the counts and stamps that the trace has of it."""

    __slots__ = ("_elements", "_last_taken")

    def __init__(self, name: str, depth: int, producer: Unit, consumer: Unit) -> None:
        super().__init__(name, depth, producer, consumer, cast("VirtualClock", None))
        self._elements = 0
        self._last_taken: int | None = None

    def recall(self, elements: int, last_taken: int | None) -> None:
        """Set what it has carried and when it was last read."""
        self._elements, self._last_taken = elements, last_taken

    @property
    @override
    def elements(self) -> int:
        return self._elements

    @property
    @override
    def last_taken_cycle(self) -> int | None:
        return self._last_taken


class _Told(NamedTuple):
    """What the shapes told of a channel in a loop, when the trace was written."""

    in_all: str | None
    shape: str | None
    per_output: int | None
    feedback: str | None


class _RecordedTokens:
    """Counts of a rebuilt machine, in the place of ``Tokens``."""

    def __init__(self, machine: Machine, told: Mapping[Channel, _Told]) -> None:
        """Use the counts that ``machine`` was rebuilt with."""
        self.machine: Final = machine
        self._told: Final = told
        self._edges: Final = dict(zip(machine.channels, machine.plan.edges, strict=True))

    def edge(self, channel: Channel) -> Edge:
        return self._edges[channel]

    def expected(self, channel: Channel) -> int | str:
        in_all = self._told[channel].in_all
        if in_all is None:
            return "unknown"
        return int(in_all) if in_all.isdigit() else in_all

    def feedback(self, channel: Channel) -> Place | None:
        feedback = self._told[channel].feedback
        if feedback is None:
            return None
        file, _, line = feedback.rpartition(":")
        return Place(file, int(line))

    def per_output(self, channel: Channel) -> int | None:
        return self._told[channel].per_output

    def state(self, channel: Channel) -> ChannelState:
        return ChannelState(
            name=channel.name,
            option=self.edge(channel).key,
            depth=channel.depth,
            held=len(channel.queue),
            sent=sent(channel),
            taken=channel.elements,
            expected=str(self.expected(channel)),
            shape=self._told[channel].shape or "",
            ended_cycle=channel.closed_cycle,
        )


def rebuilt(trace: Trace) -> tuple[Machine, Tokens]:
    """Return the machine at the last recorded state, and its counts."""
    units, operators = _units(trace)
    channels, edges = _channels(trace, units)
    told: defaultdict[Channel, _Told] = defaultdict(lambda: _Told(None, None, None, None))
    for number, *each in trace.rows(
        "SELECT channel, in_all, shape, per_output, feedback FROM waiting WHERE in_all IS NOT NULL"
    ):
        told[channels[number]] = _Told(*each)
    for unit, operation, any_of, since, waited, seen, awaited in trace.rows(
        "SELECT unit, waits_for, any_of, since_cycle, list(channel ORDER BY waiting.rowid), "
        "any_value(seen_stop), any_value(awaited_stop) "
        "FROM states LEFT JOIN waiting USING (unit) WHERE waits_for IS NOT NULL GROUP BY ALL"
    ):
        on = tuple(channels[number] for number in waited if number is not None)
        stops = None if awaited is None else (seen, awaited)
        units[unit].wait = Wait(Operation(operation), on, since, any_of=bool(any_of), stops=stops)
    machine = cast(
        "Machine",
        SimpleNamespace(
            units=tuple(units),
            channels=tuple(channels),
            on_chip=_on_chip(trace, units),
            plan=SimpleNamespace(
                program=SimpleNamespace(name=trace.meta.get("name")),
                nodes=[SimpleNamespace(operator=type(name, (), {})()) for name in operators],
                edges=tuple(edges),
            ),
        ),
    )
    return machine, cast("Tokens", _RecordedTokens(machine, told))


def _units(trace: Trace) -> tuple[list[Unit], list[str]]:
    units, operators = [], []
    for name, number, operator, file, line, cycle, finished in trace.rows(
        "SELECT name, unit, operator, file, line, coalesce(cycle, 0), coalesce(finished, false) "
        "FROM units LEFT JOIN states USING (unit) ORDER BY unit"
    ):
        unit = Unit(name, number, Place(file, line), bytes_per_cycle=1)
        unit.now, unit.finished = cycle, bool(finished)
        units.append(unit)
        operators.append(operator)
    return units, operators


def _channels(trace: Trace, units: list[Unit]) -> tuple[list[Channel], list[Any]]:
    channels: list[_RecordedChannel] = []
    edges = []
    for name, reader, depth, producer, consumer, carries in trace.rows(
        "SELECT name, reader, depth, producer, consumer, carries FROM channels ORDER BY channel"
    ):
        channel = _RecordedChannel(name, depth, units[producer], units[consumer])
        channels.append(channel)
        value = BufferType((), TileType(1, 1, ADDRESS_DTYPE)) if carries == "buffer" else None
        output = SimpleNamespace(value=value)
        edges.append(
            SimpleNamespace(
                key=reader,
                output=0,
                input=0,
                producer=SimpleNamespace(index=producer, outputs=(output,)),
                consumer=SimpleNamespace(index=consumer, inputs=(output,)),
            )
        )
    for number, elements, last in trace.rows(
        "SELECT channel, coalesce(any_value(w.elements), "
        "count(*) FILTER (taken_cycle IS NOT NULL AND NOT bare)), max(taken_cycle) "
        "FROM transfers LEFT JOIN waiting w USING (channel) GROUP BY channel"
    ):
        channels[number].recall(elements, last)
    for number, visible, bare, stop in trace.rows(
        "SELECT channel, visible_cycle, bare, stop FROM transfers "
        "WHERE taken_cycle IS NULL ORDER BY channel, element"
    ):
        element = (BareStop(stop, 0) if bare else None, stop)
        channels[number].queue.append((visible - 1, element))
    for number, closed in trace.rows(
        "SELECT DISTINCT channel, closed_cycle FROM waiting WHERE closed_cycle IS NOT NULL"
    ):
        channels[number].closed_cycle = closed
    return list(channels), edges


def _on_chip(trace: Trace, units: list[Unit]) -> SimpleNamespace:
    """Return who holds how much on chip, and who wants more, in the order they are served."""
    rows = trace.rows(
        "SELECT unit, wanted_bytes, held_bytes FROM states ORDER BY since_cycle, unit"
    )
    return SimpleNamespace(
        capacity_bytes=trace.meta.get("hardware", {}).get("on_chip", {}).get("capacity_bytes"),
        requests=[(units[unit], wanted) for unit, wanted, _ in rows if wanted],
        held_by={units[unit]: held for unit, _, held in rows if held},
    )

"""Operators of a region continue as tasks, from the state of the compiled loop.

State is copied from the arrays to units and channels. Each operator's ``run`` is called on its own
ports and replayed up to its state. During the replay, stand-ins in the ports note calls without
effects. The scheduler does not run meanwhile, so no other task sees the replaced ports.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fabric.messages.telling.causes import Operation
from fabric.timing.compiled import columns as c
from fabric.timing.compiled.boundary import publish
from fabric.timing.compiled.stand_ins import Recording, recorded_ports
from fabric.timing.engine.channel import Discard
from fabric.timing.engine.ports import Arrivals, Ports
from fabric.timing.engine.unit import Wait

if TYPE_CHECKING:
    from fabric.graph.values.value import Element
    from fabric.graph.wiring.operator import Operator
    from fabric.timing.compiled.arrays import Arrays, Joint
    from fabric.timing.compiled.boundary import Boundary
    from fabric.timing.compiled.codes import Codes
    from fabric.timing.compiled.stand_ins import Awaited
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.ports import Tracking


def leave(arrays: Arrays, boundary: Boundary, open_channel: Callable[[Channel], object]) -> None:
    """Copy the loop's progress to units and channels, for their tasks.

    ``open_channel`` allocates a channel that was not opened.
    """
    boundary.emit()
    for joint in arrays.joints:
        if joint.producer >= 0 and joint.consumer >= 0:
            open_channel(joint.channel)
    publish(arrays, boundary)
    for number, (joint, row) in enumerate(
        zip(arrays.joints, arrays.channels.tolist(), strict=True)
    ):
        if joint.producer >= 0:
            joint.channel.next_send_cycle = row[c.NEXT_SEND]
            _resume_sending(arrays, number, joint, row)
        if joint.consumer >= 0:
            joint.channel.next_take_cycle = row[c.NEXT_TAKE]
            taken, peak = row[c.TAKEN], row[c.PEAK]
            recent = _usable_cycles(arrays, number, max(0, taken - peak), taken)
            recent = [0] * (peak - len(recent)) + recent
            joint.channel.resume_receiving(recent if peak < row[c.DEPTH] else ())


def _resume_sending(arrays: Arrays, number: int, joint: Joint, row: list[int]) -> None:
    used = row[c.SENT] + row[c.RESERVED]
    depth, taken = row[c.DEPTH], row[c.TAKEN]
    unspent = _usable_cycles(arrays, number, max(0, used - depth), taken)
    joint.channel.resume_sending(max(0, depth - used), unspent, row[c.RESERVED])


def _usable_cycles(arrays: Arrays, number: int, first: int, end: int) -> list[int]:
    base, mask = arrays.place(number)
    slots = arrays.slots.array
    return [slots.item(base + (index & mask), c.USABLE) for index in range(first, end)]


class Leaving:
    """State of the operators that leave the region."""

    def __init__(
        self,
        arrays: Arrays,
        *,
        asked: Mapping[int, tuple[int, int, int]],
        refused: Mapping[int, BaseException],
        answered: Collection[int],
    ) -> None:
        """Look at ``arrays``.

        By stage, ``asked`` has the rows, row bytes and tile of bursts not yet submitted,
        ``refused`` the errors of the memory, and ``answered`` the complete bursts.
        """
        self._arrays: Final = arrays
        self._asked: Final = asked
        self._refused: Final = refused
        self._answered: Final = answered

    def place(self, number: int) -> Place:
        """Return the state of stage ``number``."""
        arrays = self._arrays
        stage = arrays.stages[number]
        row = arrays.rows[number].tolist()
        status, codes = row[c.STATUS], arrays.codes
        done, rounds = self._done(row)
        first, stamps = row[c.FIRST_INPUT], row[c.FIRST_STAMP]
        path: list[tuple[Awaited, int]] = []
        if row[c.BEFORE] >= 0:
            awaited = stage.automaton.awaited(row[c.BEFORE])
            assert awaited is not None
            path = [*stage.automaton.path(row[c.BEFORE]), (awaited, row[c.HANDED])]
        looks = None
        if stage.automaton.carries_numbers:
            looks = [arrays.last_looks(first + port) for port in range(row[c.INPUTS])]
        is_all_done = row[c.PC] == row[c.PC_END] and status != c.OFF_CHIP
        return Place(
            answers=_answers(path, looks, codes),
            done=None if is_all_done else done,
            rounds=rounds,
            stamps=arrays.stamps[stamps : stamps + c.STAMPS].tolist(),
            arrivals=[
                (cycle, port) for cycle, port in arrays.marks[first : first + row[c.MARKS]].tolist()
            ],
            arrival=row[c.ARRIVAL],
            ended=status == c.DRAINING,
            burst=self._asked.get(number),
            moving=status == c.OFF_CHIP and number not in self._answered,
            error=self._refused.get(number),
            progress=[
                self._progress(channel, first + port) for port, channel in enumerate(stage.inputs)
            ],
        )

    def _progress(self, channel: Channel, at: int) -> Progress | None:
        arrays, element = self._arrays, self._arrays.codes.element
        last = arrays.last_taken(arrays.number[channel])
        if last is None:
            return None
        code, place = last
        return Progress(place, element(code), element(arrays.last_seen(at)))

    def _done(self, row: list[int]) -> tuple[int, int]:
        """Return the finished operations of a stage's stretch, loops once, and its loop rounds."""
        operations = self._arrays.tables.operations.array
        pc, rounds = row[c.PC], row[c.TIMES]
        if rounds:
            repeat = pc
            while operations[repeat, c.WHAT] != c.REPEAT:
                repeat += 1
            if pc == repeat - operations[repeat, c.AT]:
                # Before a round is as good as behind the one before.
                pc, rounds = repeat, rounds - 1
        kinds = operations[row[c.BEGAN] : pc, c.WHAT].tolist()
        return sum(kind not in EFFECTLESS for kind in kinds), rounds


def _answers(
    path: list[tuple[Awaited, int]], looks: list[list[int]] | None, codes: Codes
) -> list[object]:
    """Return what an operator received on its ``path``.

    ``looks`` has, by input, the last codes with their numbers, which ``path`` lacks.
    """
    answers: list[object] = []
    for (kind, port, _), code in reversed(path):
        if kind == c.POP:
            answers.append(code)
        elif code < 0 or looks is None:
            answers.append(codes.element(code))
        else:
            known = looks[port].pop(0) if looks[port] else c.ENDED_CODE
            is_it = known >= 0 and code & ~c.NUMBER_MASK == known & ~c.NUMBER_MASK
            answers.append(codes.element(known) if is_it else codes.opaque(code, port))
    return answers[::-1]


EFFECTLESS: Final = frozenset({c.NOTE, c.CHECK})
"""Operations that may be repeated."""

# Any: parts of ports, of several classes.
_Part = Any


class Progress(NamedTuple):
    """Progress of an operator in an input: its last elements, and coordinates, innermost first."""

    place: list[int]
    taken: Element | None
    seen: Element | None


class Place(NamedTuple):
    """Progress of an operator.

    Attributes:
        answers: received values; the last one began its stretch.
        done: operations of that stretch; None for all.
        stamps: kept readings of the clock.
        arrivals: cycles and ports of inputs to be read in their order.
        arrival: cycle of the one read last.
        burst: rows, row bytes and tile of the next burst.
        error: raised by the memory for the burst.
        progress: by input; None if there is one input.
    """

    answers: Sequence[object]
    done: int | None
    rounds: int
    stamps: Sequence[int]
    arrivals: Sequence[tuple[int, int]]
    arrival: int
    ended: bool
    burst: tuple[int, int, int] | None
    moving: bool
    error: BaseException | None
    progress: Sequence[Progress | None]


class Standing:
    """An operator without a task, and the state it will continue from."""

    def __init__(self, operator: Operator, ports: Ports, codes: Codes, place: Place) -> None:
        self._operator: Final = operator
        self._ports: Final = ports
        self._codes: Final = codes
        self._place: Final = place

    async def run(self) -> None:
        """Continue until the operator has done its work."""
        place, ports = self._place, self._ports
        if place.error is not None:
            raise place.error
        if place.burst is not None:
            await ports.burst(*place.burst)
        elif place.moving:
            await ports.clock.park(ports.unit, Wait(Operation.OFF_CHIP, (), ports.unit.now))
        if place.ended:
            return
        past = _Past(ports, self._codes, place)
        try:
            past.begin()
            going = self._operator.run(ports)
            last = past.bring(going)
            await _going_on(going, last)
        finally:
            past.end()


@types.coroutine
def _going_on(
    going: Coroutine[object, object, None], answer: object
) -> Generator[object, object, None]:
    try:
        while True:
            answer = yield going.send(answer)
    except StopIteration:
        return
    finally:
        going.close()


class _Past:
    """Stand-ins for all parts of one operator's ports."""

    now: _Past | None = None
    """Clock of the operator during the replay."""

    def __init__(self, ports: Ports, codes: Codes, place: Place) -> None:
        self.place: Final = place
        self.is_last = False
        self.ports: Final = ports
        self.recording: Final = Recording(codes)
        self.stands: Final = recorded_ports(self.recording, ports)
        self.arrivals: list[tuple[Arrivals, Arrivals]] = []
        self._left = place.done or 0
        self._counted = 0
        self._looked: dict[int, _Part] = {}
        self._tracks: list[Tracking] = []
        sinks = zip(ports.outputs, self.stands.outputs, strict=True)
        self._sinks: dict[int, _Part] = {
            id(sink): stand for sink, stand in sinks if not isinstance(sink, Discard)
        }
        sources = zip(ports.inputs, self.stands.inputs, strict=True)
        self._sources: dict[int, _Part] = {id(source): stand for source, stand in sources}
        self._real: dict[int, _Part] = {
            id(stand): source
            for source, stand in zip(ports.inputs, self.stands.inputs, strict=True)
        }
        parts: list[_Part] = [ports, ports.unit, ports.on_chip, ports.clock, *ports.inputs]
        parts += [sink for sink in ports.outputs if not isinstance(sink, Discard)]
        self._parts: Final = {id(part): (part, part.__class__) for part in parts}

    def begin(self) -> None:
        """Replace the ports' parts by stand-ins that note calls."""
        _Past.now = self
        for part, kind in self._parts.values():
            object.__setattr__(part, "__class__", _past_of(kind))

    def end(self) -> None:
        if _Past.now is not self:
            return
        _Past.now = None
        for part, kind in self._parts.values():
            object.__setattr__(part, "__class__", kind)
        place, inputs = self.place, self.ports.inputs
        shown = [(cycle, inputs[port]) for cycle, port in place.arrivals]
        for arrivals, _ in self.arrivals:
            arrivals.__class__ = Arrivals
            arrivals.resume(shown, place.arrival)
        for track in self._tracks:
            progress = place.progress[track.port]
            if progress is not None:
                self._resume(track, progress)
        for source in self._looked.values():
            source.looked()

    def _resume(self, track: Tracking, progress: Progress) -> None:
        """Set ``track`` to the operator's progress, since the replayed path may be shorter."""
        source = id(self.ports.inputs[track.port])
        head: Element | None = self._sources[source].head
        stays = source in self._looked
        is_next = stays or head is None
        is_told = track.element is head
        # What has been taken, and the track is told of next, is at these coordinates itself.
        track.resume(progress.place, progress.taken if is_next or is_told else None)
        if is_next and is_told:
            track.passed(progress.seen if stays else None)

    def bring(self, going: Coroutine[object, object, None]) -> object:
        """Replay all answers but the last, which is returned."""
        *before, last = None, *self.place.answers
        for answer in before:
            going.send(answer)
            self.recording.stretch()
            self.recording.turned()
        self.is_last = True
        if self.place.done == 0:
            self.end()
        return last

    def count(self) -> None:
        """End the replay after the last operation that was done."""
        operations = self.recording.operations
        if self.is_last and self.place.done is not None:
            new = operations[self._counted :]
            self._counted = len(operations)
            self._left -= sum(row[c.WHAT] not in EFFECTLESS for row in new)
            if self._left <= 0:
                self.end()

    def stand_in(self, part: _Part, *, sends: bool) -> _Part:
        stands = self.stands
        if part is self.ports:
            return stands
        if part is self.ports.unit:
            return stands.unit
        if part is self.ports.on_chip:
            return stands.on_chip
        for arrivals, stand in self.arrivals:
            if part is arrivals:
                return stand
        return (self._sinks if sends else self._sources)[id(part)]

    def source_of(self, stand: _Part) -> _Part:
        return self._real[id(stand)]

    def follow(self, track: Tracking) -> None:
        self._tracks.append(track)

    def looks(self, source: _Part, *, stays: bool) -> None:
        """Note whether the next element of ``source`` was looked at."""
        if stays:
            self._looked[id(source)] = source
        else:
            self._looked.pop(id(source), None)


_SENDING: Final = frozenset({"send", "send_bare", "reserve", "put"})


def _at_once(name: str) -> Callable[..., object]:
    """Return a method that notes calls of ``name`` during the replay, and calls it afterwards."""

    def noted(part: _Part, *arguments: object, **named: object) -> object:
        past = _Past.now
        if past is None:
            return getattr(part, name)(*arguments, **named)
        stand = past.stand_in(part, sends=name in _SENDING)
        found: object = getattr(stand, name)(*arguments, **named)
        if name == "take":
            past.looks(part, stays=False)
        past.count()
        return found

    return noted


def _in_time(name: str) -> Callable[..., Coroutine[object, object, object]]:
    """Return the same for coroutines; the operation after the replay is awaited."""

    async def noted(part: _Part, *arguments: _Part, **named: object) -> object:
        past = _Past.now
        # What is looked at after its last answer has not been handed to the operator before.
        if past is None or (name in _LOOKS and past.is_last):
            if past is not None:
                past.end()
            return await getattr(part, name)(*arguments, **named)
        source = arguments[0] if name == "show" else part
        given = (past.stand_in(source, sends=False),) if name == "show" else arguments
        found = await getattr(past.stand_in(part, sends=False), name)(*given, **named)
        if name == "earliest":
            return past.source_of(found)
        if name in _LOOKS:
            if _Past.now is not past:
                # It has looked, and no more than that.
                if found:
                    source.looked()
                return await getattr(part, name)(*arguments)
            past.looks(source, stays=name != "receive" and bool(found))
        past.count()
        return found

    return noted


_LOOKS: Final = frozenset({"peek", "receive", "show", "earliest"})


def _send_at(sink: _Part, element: object, requested_cycle: int) -> object:
    past = _Past.now
    if past is None:
        return sink.send_at(element, requested_cycle)
    found: object = past.stand_in(sink, sends=True).send(element)
    past.count()
    return found


def _release(memory: _Part, owner: object, size_bytes: int, cycle: int) -> None:
    past = _Past.now
    if past is None:
        memory.release(owner, size_bytes, cycle)
        return
    past.recording.note(c.HOLD, amount=-size_bytes)
    past.count()


def _times(ports: _Part, count: int) -> Iterator[int]:
    past = _Past.now
    if past is None:
        yield from ports.times(count)
        return
    yield from past.stands.times(count)
    if _Past.now is past:
        past.count()
        return
    # It stands in the middle of this loop.
    yield from range(past.place.rounds + 1, count)


def _arrivals(ports: _Part) -> Arrivals:
    past = _Past.now
    if past is None:
        found: Arrivals = ports.arrivals()
        return found
    arrivals = Arrivals(ports)
    arrivals.__class__ = _past_of(Arrivals)
    past.arrivals.append((arrivals, past.stands.arrivals()))
    return arrivals


def _follow(_: _Part, track: Tracking) -> None:
    past = _Past.now
    if past is not None:
        past.follow(track)


def _park(clock: _Part, unit: object, wait: object) -> object:
    past = _Past.now
    if past is not None:
        past.end()
    return clock.park(unit, wait)


def _now(_: _Part) -> int:
    past = _Past.now
    assert past is not None
    # Any: what stands in for a cycle.
    noted: Any = past.stands.unit.now
    number: int = noted.reading.number
    return past.place.stamps[number]


_PAST: Final[dict[str, object]] = {
    **{name: _at_once(name) for name in (*_SENDING, "take", "turn", "announce", "number")},
    **{name: _at_once(name) for name in ("charge", "compute", "busy_until")},
    **{name: _in_time(name) for name in (*_LOOKS, "burst", "allocate")},
    "send_at": _send_at,
    "release": _release,
    "times": _times,
    "arrivals": _arrivals,
    "park": _park,
    "follow": _follow,
    "now": property(_now),
}
"""Replacements by method."""

_NOT_OF_PORTS: Final = frozenset({"now"})
"""Attributes read from the unit."""


@cache
def _past_of(kind: type) -> type:
    left_out = _NOT_OF_PORTS if issubclass(kind, Ports) else frozenset()
    left_out |= frozenset(name for name in _PAST if not hasattr(kind, name))
    found = {name: each for name, each in _PAST.items() if name not in left_out}
    return type(f"Past{kind.__name__}", (kind,), {"__slots__": (), **found})

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import structs
from typing_extensions import override

from fabric.extend import Element, Observer, Unit, Watched
from fabric.graph.values.value import Empty
from fabric.messages.causes import Cause, Operation
from fabric.timing.state.run_state import ChannelState, RunState, UnitState, WaitState

_OPERATIONS = {
    Cause.EMPTY: Operation.RECEIVE,
    Cause.FULL: Operation.SEND,
    Cause.HBM: Operation.OFF_CHIP,
    Cause.CAPACITY: Operation.CAPACITY,
}


class Waited(NamedTuple):
    end: int
    cycles: int
    cause: Cause
    channel: int | None
    wanted_bytes: int


class Moved(NamedTuple):
    sent: int
    requested: int
    taken: int | None
    bare: bool
    left_over: bool


@dataclass
class Observed(Observer):
    waits: defaultdict[int, list[Waited]] = field(default_factory=lambda: defaultdict(list))
    elements: defaultdict[int, list[Moved]] = field(default_factory=lambda: defaultdict(list))
    bursts: list[tuple[int, int]] = field(default_factory=list)
    channels: list[Watched] = field(default_factory=list)

    @override
    def watch(self, channel: Watched) -> Callable[..., None]:
        self.channels.append(channel)

        def transferred(
            element: Element, sent: Sequence[int], seen: tuple[int, int, int], taken: object
        ) -> None:
            cycle = taken[1] if isinstance(taken, tuple) else seen[1]
            self._moved(channel, element, sent, seen, cycle)

        return transferred

    @override
    def left_over(
        self,
        channel: Watched,
        element: Element,
        sent: Sequence[int],
        seen: tuple[int, int, int] | None,
        cycle: int,
    ) -> None:
        self._moved(channel, element, sent, seen, cycle, left_over=True)

    @override
    def idled(self, channel: Watched, stamp: tuple[int, int, int], until_cycle: int) -> None:
        self._waited(channel.consumer, stamp[1:], Cause.EMPTY, channel.number)

    @override
    def ended(self, channel: Watched, stamp: tuple[int, int, int]) -> None:
        self._waited(channel.consumer, stamp[1:], Cause.EMPTY, channel.number)

    @override
    def burst(self, unit: Unit, requests: int, stamp: tuple[int, int, int]) -> None:
        self._waited(unit, stamp[1:], Cause.HBM)
        self.bursts.append((stamp[1], requests))

    @override
    def allocated(self, unit: Unit, size_bytes: int, stamp: tuple[int, int, int]) -> None:
        self._waited(unit, stamp[1:], Cause.CAPACITY, wanted_bytes=size_bytes)

    def finish(self) -> None:
        for channel in self.channels:
            for element, sent, seen in channel.held:
                self._moved(channel, element, sent, seen, None)
            for stamp in channel.reserved:
                self._waited(channel.producer, stamp[1:], Cause.FULL, channel.number)

    def _moved(
        self,
        channel: Watched,
        element: Element,
        sent: Sequence[int],
        seen: tuple[int, int, int] | None,
        taken: int | None,
        *,
        left_over: bool = False,
    ) -> None:
        reserved = sent[5] if len(sent) > 3 else sent[1]
        self._waited(channel.producer, (reserved, sent[2]), Cause.FULL, channel.number)
        if seen is not None:
            self._waited(channel.consumer, seen[1:], Cause.EMPTY, channel.number)
        requested = sent[3] if len(sent) > 3 else -1
        bare = isinstance(element[0], Empty)
        self.elements[channel.number].append(Moved(sent[1], requested, taken, bare, left_over))

    def _waited(
        self,
        unit: Unit,
        stamp: Sequence[int],
        cause: Cause,
        channel: int | None = None,
        wanted_bytes: int = 0,
    ) -> None:
        end, cycles = stamp
        if cycles:
            self.waits[unit.index].append(Waited(end, cycles, cause, channel, wanted_bytes))


def replay(
    observed: Observed, end: RunState, request_bytes: int, cycles: Collection[int]
) -> Iterator[tuple[int, RunState]]:
    counted = [Counter[Cause]() for _ in end.units]
    by_channel = [Counter[Cause]() for _ in end.channels]
    waiting = [_by_cycle(observed, unit) for unit in end.units]
    for cycle in range(max(cycles) + 1):
        if cycle in cycles:
            waits = [each.get(cycle) for each in waiting]
            yield cycle, _state(observed, end, request_bytes, cycle, counted, by_channel, waits)
        # A unit works in a cycle if it does not wait. A wait is counted in the cycle in which it
        # ends.
        for unit, by_cycle in zip(end.units, waiting, strict=True):
            over = by_cycle.get(cycle)
            if over is None and cycle < unit.cycle:
                counted[unit.number][Cause.BUSY] += 1
            if over is None or over.end != cycle + 1:
                continue
            counted[unit.number][over.cause] += over.cycles
            if over.channel is not None:
                back = end.channels[over.channel].backward_cycles
                credit = min(over.cycles, back) if over.cause is Cause.FULL else 0
                by_channel[over.channel][Cause.CREDIT] += credit
                by_channel[over.channel][over.cause] += over.cycles - credit


def _by_cycle(observed: Observed, unit: UnitState) -> dict[int, Waited]:
    waits: dict[int, Waited] = {}
    for wait in observed.waits[unit.number]:
        for cycle in range(wait.end - wait.cycles, wait.end):
            assert cycle not in waits
            waits[cycle] = wait
    return waits


def _state(
    observed: Observed,
    end: RunState,
    request_bytes: int,
    cycle: int,
    counted: list[Counter[Cause]],
    by_channel: list[Counter[Cause]],
    waits: list[Waited | None],
) -> RunState:
    over = cycle >= end.cycles
    moved_bytes = request_bytes * sum(count for done, count in observed.bursts if done <= cycle)
    return RunState(
        program=end.program,
        cycles=min(cycle, end.cycles),
        units=tuple(
            _unit(unit, counts, _wait(unit, wait, cycle), cycle)
            for unit, counts, wait in zip(end.units, counted, waits, strict=True)
        ),
        channels=tuple(
            _channel(observed.elements[each.number], each, counts, cycle)
            for each, counts in zip(end.channels, by_channel, strict=True)
        ),
        on_chip=end.on_chip._replace(
            requests=_requests(observed, end, cycle),
            held=end.on_chip.held if over or end.on_chip.capacity_bytes is None else None,
        ),
        hbm_bytes_moved=end.hbm_bytes_moved if over else moved_bytes,
        hbm=end.hbm if over else None,
    )


def _wait(end: UnitState, over: Waited | None, cycle: int) -> WaitState | None:
    if over is None:
        return end.wait if end.wait is not None and end.wait.since_cycle <= cycle else None
    channels = () if over.channel is None else (over.channel,)
    start = over.end - over.cycles
    return WaitState(_OPERATIONS[over.cause], channels, start, any_of=False, stops=None)


def _unit(end: UnitState, counted: Counter[Cause], wait: WaitState | None, cycle: int) -> UnitState:
    return structs.replace(
        end,
        cycle=counted.total(),
        finished=end.finished and cycle >= end.cycle,
        wait=wait,
        busy_cycles=counted[Cause.BUSY],
        hbm_cycles=counted[Cause.HBM],
        capacity_cycles=counted[Cause.CAPACITY],
        flops=end.flops if cycle >= end.cycle else None,
    )


def _channel(
    elements: list[Moved], end: ChannelState, counted: Counter[Cause], cycle: int
) -> ChannelState:
    sent = [each for each in elements if each.sent <= cycle]
    taken = [each for each in sent if each.taken is not None and each.taken <= cycle]
    held = sent[len(taken) :]
    most = max(len(held), min(len(taken), 1))
    taken_cycles = [each.taken for each in taken if each.taken is not None]
    for number, element in enumerate(taken):
        if not element.left_over:
            set_out = max(element.sent, element.requested - end.forward_cycles)
            back = bisect_right(taken_cycles, set_out - end.backward_cycles)
            most = max(most, number + 1 - back)
    newest = [max(each.sent, each.requested - end.forward_cycles) for each in held]
    dequeues = [each.taken for each in taken if each.taken is not None and not each.left_over]
    closed = end.closed_cycle
    return structs.replace(
        end,
        held=len(held),
        sent=sum(not each.bare for each in sent),
        taken=sum(not each.bare for each in taken),
        bare_stops=sum(each.bare for each in sent),
        closed_cycle=closed if closed is not None and closed <= cycle else None,
        newest_sent_cycle=newest[-1] if newest else None,
        last_taken_cycle=dequeues[-1] if dequeues else None,
        peak_occupancy=most,
        empty_cycles=counted[Cause.EMPTY],
        full_cycles=counted[Cause.FULL],
        credit_cycles=counted[Cause.CREDIT],
        left_over=sum(each.left_over and not each.bare for each in taken),
    )


def _requests(observed: Observed, end: RunState, cycle: int) -> tuple[tuple[int, int], ...]:
    wanted = [
        (over.end - over.cycles, number, over.wanted_bytes)
        for number, waits in observed.waits.items()
        for over in waits
        if over.wanted_bytes and over.end - over.cycles <= cycle < over.end
    ]
    for number, wanted_bytes in end.on_chip.requests:
        wait = end.units[number].wait
        if wait is not None and wait.since_cycle <= cycle:
            wanted.append((wait.since_cycle, number, wanted_bytes))
    return tuple((number, wanted_bytes) for _, number, wanted_bytes in sorted(wanted))

"""The reports of units of a held run, in two parts: what happened up to its cycle, and later.

Units run ahead in their own time; their stamps say what belongs to a cycle.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from fabric.engine.channel_rule import credit_part
from fabric.engine.observer import Observer
from fabric.stepping.carried import Carried, Moved
from fabric.telling.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fabric.engine.channel import Channel
    from fabric.engine.observer import Sent, Stamp, Taken, Transferred, Watched
    from fabric.engine.unit import Unit
    from fabric.values.value import Element

__all__ = ["Ledger", "Waited"]


class Waited(NamedTuple):
    """A wait that has ended.

    Attributes:
        unit: that waited.
        end_cycle: in which it went on.
        cycles: that it waited.
        cause: under which they count.
        channel: waited for; None for the memories.
        chose: the unit looked at several channels, and this one came first.
    """

    unit: int
    end_cycle: int
    cycles: int
    cause: Cause
    channel: int | None
    chose: bool = False


class Ledger(Observer):
    """Told of a run, it tells what had happened by a cycle that only moves forward.

    Attributes:
        carried: by each channel, in edge order.
        waited: cycles of each unit by cause, of waits that were over.
        later: waits that ended later.
        requests: of bursts that were answered.
    """

    def __init__(self) -> None:
        self.carried: list[Carried] = []
        self.waited: list[Counter[Cause]] = []
        self.later: list[Waited] = []
        self.requests = 0
        self._bursts: list[tuple[int, int]] = []

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        self.carried.clear()
        self.waited = [Counter() for _ in units]
        self.later = []
        self.requests = 0
        self._bursts = []

    @override
    def watch(self, channel: Watched) -> Transferred:
        number = channel.number
        hop: Channel = channel  # type: ignore[assignment]  # what is watched has latencies, too
        carried = Carried(channel, hop.forward_cycles, hop.backward_cycles)
        self.carried.append(carried)
        later, producer, consumer = carried.later, channel.producer.index, channel.consumer.index

        def transferred(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
            later.append(Moved(element, sent, seen[1] if taken is None else taken[1], False))
            if sent[2]:
                self.later.append(_sending(producer, number, sent))
            if seen[2]:
                self.later.append(Waited(consumer, seen[1], seen[2], Cause.EMPTY, number))

        return transferred

    @override
    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        number = channel.number
        self.carried[number].later.append(Moved(element, sent, cycle, True))
        self.later.extend(_waits_of(channel, sent, seen))

    @override
    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        unit, (_, cycle, waited_cycles) = channel.consumer.index, stamp
        self.later.append(
            Waited(unit, cycle, waited_cycles, Cause.EMPTY, channel.number, chose=True)
        )

    @override
    def ended(self, channel: Watched, stamp: Stamp) -> None:
        self._add(channel.consumer, stamp, Cause.EMPTY, channel.number)

    @override
    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        self._add(unit, stamp, Cause.HBM)
        self._bursts.append((stamp[1], requests))

    @override
    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        self._add(unit, stamp, Cause.CAPACITY)

    def _add(self, unit: Unit, stamp: Stamp, cause: Cause, channel: int | None = None) -> None:
        _, cycle, waited_cycles = stamp
        if waited_cycles:
            self.later.append(Waited(unit.index, cycle, waited_cycles, cause, channel))

    def go_to(self, cycle: int, channels: Sequence[Channel]) -> None:
        """Count what had happened by ``cycle``: all of it has been told."""
        for carried, channel in zip(self.carried, channels, strict=True):
            carried.go_to(cycle, channel.depth)
        over = [wait for wait in self.later if wait.end_cycle <= cycle]
        if over:
            self.later = [wait for wait in self.later if wait.end_cycle > cycle]
        for wait in over:
            self.waited[wait.unit][wait.cause] += wait.cycles
            if wait.channel is not None:
                carried = self.carried[wait.channel]
                if wait.cause is Cause.EMPTY:
                    carried.empty_cycles += wait.cycles
                else:
                    back = credit_part(wait.cycles, channels[wait.channel].backward_cycles)
                    carried.full_cycles += wait.cycles - back
                    carried.credit_cycles += back
        self.requests += sum(requests for end, requests in self._bursts if end <= cycle)
        self._bursts = [burst for burst in self._bursts if burst[0] > cycle]

    def untold(self) -> Iterator[Waited]:
        """Yield waits that have ended and are told of later: with elements not yet dequeued."""
        for carried in self.carried:
            channel = carried.watched
            for _, sent, seen in channel.held:
                yield from _waits_of(channel, sent, seen)
            for stamp in channel.reserved:
                if stamp[2]:
                    yield _sending(channel.producer.index, channel.number, stamp)

    def next_cycle(self, after: int) -> int | None:
        """Return the first cycle after ``after`` in which something is known to have happened.

        That is: an element was sent or dequeued, or the off-chip memory has answered.
        """
        found = [carried.next_cycle(after) for carried in self.carried]
        cycles = [cycle for cycle in found if cycle is not None]
        cycles.extend(end for end, _ in self._bursts)
        return min(cycles, default=None)


def _sending(unit: int, channel: int, sent: Sent) -> Waited:
    end_cycle = sent[5] if len(sent) > 3 else sent[1]
    return Waited(unit, end_cycle, sent[2], Cause.FULL, channel)


def _waits_of(channel: Watched, sent: Sent, seen: Stamp | None) -> Iterator[Waited]:
    """Yield the waits, of both ends, for one element."""
    if sent[2]:
        yield _sending(channel.producer.index, channel.number, sent)
    if seen is not None and seen[2]:
        yield Waited(channel.consumer.index, seen[1], seen[2], Cause.EMPTY, channel.number)

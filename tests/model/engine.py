"""A time-ordered simulation of sequential processes joined by channels; no trio, no fabric.

Each process is a generator with a clock ``t``. It yields the cycle at which it continues, or None
until another process wakes it. Effects that others can see happen when the simulation's time is
the process's clock, so a process sees everything that was sent before.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[int | None, None, T]
Element: TypeAlias = tuple[Any, int]  # value and stop level


class Process:
    """A sequential process.

    Attributes:
        t: its clock.
        polls: whether an element wakes it when sent, not when visible, and after other processes.
        look: the earliest cycle in which it looks at its inputs.
        least_end: the earliest cycle in which it ends.
        epoch: counts its steps; wake-ups of an earlier step have no effect.
        done: whether it has ended.
    """

    def __init__(self, simulation: Simulation, name: str, *, polls: bool = False) -> None:
        self.simulation = simulation
        self.name = name
        self.t = self.look = self.least_end = 0
        self.polls = polls
        self.epoch = 0
        self.done = False
        self.outputs: list[Channel] = []
        self.steps: Steps[None]

    def wake(self, time: int) -> None:
        """Continue at ``time``, or at the process's own clock if that is later."""
        self.simulation.push(max(time, self.t), self)


class Channel:
    """A FIFO of ``depth`` elements, with the cycles of an element and of its credit.

    With ``rests``, a unit that waited for room looks at its inputs a cycle later. With ``spaced``,
    the end comes a cycle after the last element.
    """

    def __init__(self, depth: int, *cycles: int) -> None:
        self.depth = depth
        self.there, self.back, self.apart, self.rests, self.spaced = cycles
        self.put_at: int | None = None
        self.items: deque[tuple[int, Any, int]] = deque()
        self.taken: list[int] = []
        self.sent = 0
        self.closed_at: int | None = None
        self.seen = False  # whether the reader has seen the next element
        self.reader: Process | None = None
        self.writer: Process | None = None


Body: TypeAlias = Callable[[Process, list[Channel], list[Channel]], Steps[None]]


class Simulation:
    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.now = 0
        self._heap: list[tuple[int, bool, int, int, Process]] = []
        self._count = 0

    def push(self, time: int, process: Process) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, process.polls, self._count, process.epoch, process))

    def start(self, process: Process, steps: Steps[None], outputs: list[Channel]) -> None:
        process.steps, process.outputs = steps, outputs
        self.processes.append(process)
        self.push(0, process)

    def run(self) -> bool:
        while self._heap:
            time, _, _, epoch, process = heapq.heappop(self._heap)
            if process.done or epoch != process.epoch:
                continue
            self.now = time
            process.epoch += 1
            try:
                then = next(process.steps)
            except StopIteration:
                process.done = True
                close(process, process.outputs)
            else:
                if then is not None:
                    self.push(then, process)
        return all(each.done for each in self.processes)


def _wake_reader(channel: Channel, time: int) -> None:
    reader, channel.reader = channel.reader, None
    if reader is not None:
        reader.wake(time)


def close(p: Process, channels: list[Channel]) -> None:
    for channel in channels:
        if channel.closed_at is None:
            channel.closed_at = max(p.t, p.least_end) + (channel.there if channel.apart else 0)
            _wake_reader(channel, p.t)


def peek(p: Process, channel: Channel) -> Steps[Element | None]:
    """Return the next element when it is visible, None when the channel is closed."""
    while not channel.items and channel.closed_at is None:
        channel.reader = p
        yield None
    if channel.items:
        _, value, stop = channel.items[0]
        stamp = shown(channel) if channel.seen else max(shown(channel), p.look)
        if stamp > p.t:
            p.t = stamp
            yield stamp
        channel.seen = True
        return value, stop
    assert channel.closed_at is not None
    if channel.seen:  # the end is seen only once
        return None
    channel.seen = True
    stamp = max(channel.closed_at, p.look)
    if channel.spaced and channel.taken:
        stamp = max(stamp, channel.taken[-1] + 1)
    if stamp > p.t:
        p.t = stamp
        yield p.t
    return None


def shown(channel: Channel) -> int:
    stamp = channel.items[0][0]
    if channel.apart and channel.taken:
        return max(stamp, channel.taken[-1] + channel.apart)
    return stamp


def take(p: Process, channel: Channel) -> Steps[Element | None]:
    """Return the next element and free its slot; None when the channel is closed."""
    element = (
        channel.items[0][1:] if channel.seen and channel.items else (yield from peek(p, channel))
    )
    if element is not None:
        channel.items.popleft()
        channel.seen = False
        channel.taken.append(p.t)
        writer, channel.writer = channel.writer, None
        if writer is not None:
            writer.wake(p.t + channel.back)
    return element


def slot(p: Process, channel: Channel) -> Steps[None]:
    before = p.t
    yield from _slot(p, channel)
    if channel.rests and p.t > before:
        p.look = p.t + 1


def _slot(p: Process, channel: Channel) -> Steps[None]:
    if channel.apart and channel.put_at is not None and channel.put_at + channel.apart > p.t:
        p.t = channel.put_at + channel.apart
        yield p.t
    before = channel.sent - channel.depth  # its dequeue makes room
    if before < 0:
        return
    while len(channel.taken) <= before:
        channel.writer = p
        yield None
    if channel.taken[before] + channel.back > p.t:
        p.t = channel.taken[before] + channel.back
        yield p.t


def send(
    p: Process, channel: Channel, value: Any, stop: int = 0, requested: int | None = None
) -> Steps[None]:
    """Wait for room, then send; visible after the latency and not before ``requested``."""
    requested = p.t if requested is None else requested
    yield from slot(p, channel)
    put(p, channel, value, stop, requested)


def put(p: Process, channel: Channel, value: Any, stop: int, requested: int) -> None:
    stamp = max(requested, p.t + channel.there)
    channel.put_at = p.t
    if channel.spaced:
        p.least_end = p.t + 1
    channel.items.append((stamp, value, stop))
    channel.sent += 1
    if channel.reader is not None:
        _wake_reader(channel, p.t if channel.reader.polls else stamp)


def wait(p: Process, cycles: int) -> Steps[None]:
    if cycles:
        p.t += cycles
        yield p.t


def end(p: Process, *channels: Channel) -> Steps[None]:
    for channel in channels:
        rest = yield from peek(p, channel)
        assert rest is None, f"{p.name}: an input goes on: {rest}"

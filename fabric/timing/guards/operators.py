"""Guards of a user's operator: its unit, the ends of its channels, and its ports.

Only the fabric may set the clock. An operator has to make progress, to await one operation at a
time in its task, and to send values of its stream's type.

Source of the nesting rule: Streaming Tensor Programs, section 3.1. Bare stops are an addition.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from types import CodeType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from trio.lowlevel import current_task
from typing_extensions import override

from fabric.graph.values.fit import MOST_CYCLES, described, element_misfit, freeze, whole
from fabric.graph.values.stream_type import StreamType
from fabric.graph.values.value import Element, Empty
from fabric.messages.errors import Refusal
from fabric.messages.place import code_place, written_by_us
from fabric.messages.text import counted
from fabric.timing.engine.channel import AssumedSink, Channel, Discard
from fabric.timing.engine.ports import Ports
from fabric.timing.engine.unit import Unit, as_cycle

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
End = TypeVar("End", bound="GuardedReads | GuardedSink")

TASKS: Final = "starts a task: expected an operator that awaits its channels in turn"

_CHECKS: Final = 10
"""Consecutive checks without progress before the operator is stopped."""

_REACH_STEPS: Final = 10
"""On the host, a wait for a cycle takes as long as ten charges."""

_ours: Final[set[CodeType]] = set()
"""The fabric's functions that may set attributes."""

_set: Final = object.__setattr__
_set_now: Final[Callable[[Unit, int], None]] = vars(Unit)["now"].__set__
_set_busy_cycles: Final[Callable[[Unit, int], None]] = vars(Unit)["busy_cycles"].__set__


class Circling(BaseException):
    """Ends an operator that charges or waits for cycles endlessly: a livelock of one unit."""


class _Stray(Refusal, SystemExit):
    """Ends a thread silently: the operator reports the error."""


class Guard:
    """Records the operations of one user's operator.

    Attributes:
        reads, writes: its channels.
        shown: channels on which the next element was peeked.
        most_steps: limit of charges without progress; a wait for a cycle counts as ten.
        held: the coroutine of the operation that is to be awaited next.
        stray: an error of another task or wait, raised at the operator's next operation.
        running: the operator's coroutine.
    """

    __slots__ = (
        "_called", "_checks", "_moved", "_operation", "_steps_left", "held", "most_steps", "reads",
        "running", "shown", "stray", "unit", "writes",
    )  # fmt: skip

    def __init__(self, unit: Unit, reads: Sequence[Channel], writes: Sequence[Channel]) -> None:
        self.unit: Final = unit
        self.reads: Final = reads
        self.writes: Final = writes
        self.shown: Final[set[Channel]] = set()
        # No limit, unless the run looks for livelocks.
        self.most_steps = MOST_CYCLES
        self._steps_left, self._moved, self._checks = 0, -1, 0
        self._operation: str | None = None
        self._called: tuple[CodeType, int] | None = None
        self.held: Coroutine[Any, Any, object] | None = None
        self.stray: Refusal | None = None
        self.running: object = None

    def begin(self, operation: str) -> None:
        """Check that the last operation was awaited; note ``operation`` and its caller."""
        if self._operation is not None or self.stray is not None:
            self.end()
        frame = sys._getframe(2)
        self._operation, self._called = operation, (frame.f_code, frame.f_lasti)

    def awaited(self) -> None:
        """Note that the operation is awaited; refuse other tasks."""
        self._operation = self.held = None
        self.check_task()

    def check_task(self) -> None:
        """Refuse calls from other threads and tasks."""
        try:
            task = current_task()
        except RuntimeError:
            task = None
        if task is not self.unit.strand.task:
            caller = "thread" if task is None else "task"
            # The operator may never see an error that is raised in the other task.
            self.stray = _Stray(
                f"another {caller} uses its channels: expected the operator to await them in turn"
            )
            raise self.stray

    def end(self) -> None:
        """Refuse operations that the operator itself has not awaited."""
        if self.stray is not None:
            raise self.stray
        if self._operation is not None:
            operation, called = self._operation, self._called
            if self.has_tasks:
                self.held = None  # a task of the operator awaits it
                raise Refusal(TASKS)
            self.drop()
            assert called is not None
            raise Refusal(
                f"{operation}() is not awaited: expected `await` at once", place=code_place(*called)
            )

    @property
    def has_tasks(self) -> bool:
        """Whether the operator has started tasks that have not ended."""
        task = self.unit.strand.task
        return task is not None and any(nursery.child_tasks for nursery in task.child_nurseries)

    def drop(self) -> None:
        """Close an operation that was not awaited, so that Python does not warn."""
        self._operation = None
        if self.held is not None:
            self.held.close()
            self.held = None

    def let_go(self) -> None:
        """Stop counting steps and calls: the operator has failed."""
        self.drop()
        self._steps_left = MOST_CYCLES

    def step(self, steps: int) -> None:
        """Count steps of a loop; between two checks, an element or a tile has to move."""
        self._steps_left -= steps
        if self._steps_left >= 0:
            return
        moved = self.unit.off_chip_bytes
        moved += sum(channel.taken for channel in self.reads)
        moved += sum(channel.sent for channel in self.writes)
        if moved == self._moved and self._checks == _CHECKS:
            raise Circling
        self._checks = self._checks + 1 if moved == self._moved else 1
        self._steps_left, self._moved = self.most_steps // _CHECKS, moved


def _at_once(
    method: Callable[Concatenate[End, Arguments], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[End, Arguments], Coroutine[Any, Any, Result]]:
    """Return an asynchronous method that the operator awaits before its next operation."""

    @wraps(method)
    def begin(
        self: End, *args: Arguments.args, **named: Arguments.kwargs
    ) -> Coroutine[Any, Any, Result]:
        guard = self.guard
        guard.begin(method.__name__)
        guard.held = call = method(self, *args, **named)
        return call

    return begin  # type: ignore[return-value]  # mypy sees no method in it


@cache
def _guarded(kind: type[Unit]) -> Any:
    """Return the class ``kind`` with the methods of ``GuardedUnit`` in front."""
    return type(f"Guarded{kind.__name__}", (GuardedUnit, kind), {"__slots__": ()})


class GuardedUnit(Unit):
    """Methods of a user's unit: only the fabric sets attributes, and steps of loops are counted."""

    __slots__ = ()

    guard: Guard

    @override
    def __setattr__(self, name: str, value: object) -> None:
        code = sys._getframe(1).f_code
        if code not in _ours:
            if not written_by_us(code):
                raise Refusal(
                    f"{name} of its unit is set to {described(value)}: expected charge(cycles) "
                    "for work; the fabric counts waits"
                )
            _ours.add(code)
        _set(self, name, value)

    @override
    def charge(self, cycles: int) -> None:
        if type(cycles) is not int or not 0 <= cycles < MOST_CYCLES - self.now:
            cycles = self._cycles(cycles)
        _set_now(self, self.now + cycles)
        _set_busy_cycles(self, self.busy_cycles + cycles)
        self.guard.step(1)

    @override
    def reached(self) -> None:
        self.guard.step(_REACH_STEPS)

    def _cycles(self, cycles: object) -> int:
        result = whole(cycles, "cycles are charged")
        if result >= MOST_CYCLES - self.now:
            raise Refusal(
                f"{described(result)} cycles are charged: expected a clock that stays below 2**60"
            )
        return result


class GuardedReads(Channel):
    """Methods of a channel that a user's operator reads."""

    __slots__ = ()

    @property
    def guard(self) -> Guard:
        return cast("GuardedUnit", self.consumer).guard

    @_at_once
    @override
    async def receive(self) -> Element | None:
        guard = self.guard
        guard.awaited()
        element = await super().receive()
        guard.shown.discard(self)
        if element is not None:
            freeze(element[0])
        return element

    @_at_once
    @override
    async def peek(self) -> Element | None:
        guard = self.guard
        guard.awaited()
        element = await super().peek()
        if element is not None:
            guard.shown.add(self)
            freeze(element[0])
        return element

    @override
    def take(self) -> Element:
        guard = self.guard
        guard.check_task()
        if self not in guard.shown:
            raise Refusal(f"take() from {self.name} without a look: expected `await peek()` before")
        guard.shown.discard(self)
        return super().take()

    @override
    def hear(self) -> Element:
        self.guard.check_task()
        # Which elements have arrived depends on the host unless the operator waited for the cycle.
        raise Refusal(f"hear() from {self.name}: expected `await peek()` and take()")


class GuardedSink:
    """Wraps a channel and refuses values that are not elements of its stream.

    Elements are numbered from 0, including bare stops.
    """

    __slots__ = ("_functional", "_last", "_name", "_reserved", "_sent", "_sink", "_type", "guard")

    def __init__(
        self,
        sink: Channel | AssumedSink | Discard,
        name: str,
        stream_type: StreamType,
        guard: Guard,
        *,
        functional: bool,
    ) -> None:
        self._sink: Final = sink
        self._name: Final = name
        self._type: Final = stream_type
        self._functional: Final = functional
        self.guard: Final = guard
        self._sent = 0
        self._reserved = 0
        # The level of the last stop. At first no dimension is open, as after the outermost stop.
        self._last = stream_type.rank

    @_at_once
    async def send(self, element: Element) -> None:
        self.guard.awaited()
        await self._send(element)

    @_at_once
    async def send_bare(self, level: int, empty_dimension: int) -> None:
        self.guard.awaited()
        await self._send((Empty(empty_dimension), level))

    async def _send(self, element: object) -> None:
        value, stop = element = self._checked(element)
        if isinstance(value, Empty):
            await self._sink.send_bare(stop, value.dimension)
        else:
            await self._sink.send(element)

    @_at_once
    async def send_at(self, element: Element, requested_cycle: int) -> None:
        self.guard.awaited()
        try:
            cycle = as_cycle(requested_cycle)
        except TypeError:
            raise self._refusal(
                f"is sent for cycle {described(requested_cycle)}: expected an integer"
            ) from None
        element = self._checked(element)
        if isinstance(element[0], Empty):
            raise Refusal(f"a bare stop is sent on {self._name} by send_at: expected send_bare")
        await self._sink.send_at(element, cycle)

    @_at_once
    async def reserve(self) -> None:
        self.guard.awaited()
        await self._sink.reserve()
        self._reserved += 1

    def put(self, element: Element) -> None:
        self.guard.end()
        self.guard.check_task()
        if not self._reserved:
            raise self._refusal("is put without a slot: expected `await reserve()` before")
        element = self._checked(element)
        self._reserved -= 1
        self._sink.put(element)

    def close(self) -> None:
        """Refuse: a stream ends with its operator."""
        raise Refusal(f"{self._name} is closed by its operator: expected the end of run() to do so")

    def finish(self) -> None:
        """Close the channel at the end of the operator; refuse open dimensions."""
        rank = self._type.rank
        if self._last != rank:
            raise Refusal(
                f"{self._name} ends after element {self._sent - 1:,}, which has a stop of level "
                f"{self._last}: expected level {rank}, which closes the dimensions of "
                f"{self._type}",
                counted=True,
            )
        self._sink.close()

    def _checked(self, element: object) -> Element:
        """Return ``element``, made read-only; refuse values of another type."""
        if type(element) is not tuple or len(element) != 2:
            raise self._refusal(
                f"is {described(element)}: expected a tuple (value, level of the stop)"
            )
        value, stop = element
        if type(stop) is not int:
            try:
                stop = operator.index(None if isinstance(stop, bool) else stop)  # type: ignore[arg-type]
            except TypeError:
                raise self._refusal(
                    f"has a stop of level {described(stop)}: expected an integer"
                ) from None
        wrong = element_misfit((value, stop), self._last, self._type, self._functional)
        if wrong is not None:
            raise self._refusal(wrong)
        freeze(value, sent=True)
        self._last = stop
        self._sent += 1
        return value, stop

    def _refusal(self, what: str) -> Refusal:
        return Refusal(f"element {self._sent:,} of {self._name} {what}", counted=True)


@dataclass(frozen=True)
class GuardedPorts(Ports):
    """Ports of a user's operator."""

    @override
    async def burst(self, rows: int, row_bytes: int, number: int = 0) -> None:
        cast("GuardedUnit", self.unit).guard.check_task()
        region = self.region
        if region is None:
            raise Refusal(
                "burst() is called: expected an operator with off_chip = 'read' or 'write'"
            )
        rows = whole(rows, "rows are moved")
        row_bytes = whole(row_bytes, "bytes of a row are moved")
        number = whole(number, "is the number of a tile")
        burst = region.burst(rows, row_bytes, number)
        begin = burst.address - region.first_address
        end = begin + (rows - 1) * burst.pitch_bytes + row_bytes
        if rows and row_bytes and end > region.size_bytes:
            raise Refusal(
                f"bytes {begin:,} to {end - 1:,} of its tensor are moved: "
                f"expected a burst inside of its {counted(region.size_bytes, 'byte')}"
            )
        await super().burst(rows, row_bytes, number)

    @override
    def finish(self) -> None:
        cast("GuardedUnit", self.unit).guard.end()
        for sink in self.outputs:
            cast("GuardedSink", sink).finish()
        if self.log is not None:
            self.log.finished(self.unit)


def guarded_ports(ports: Ports, names: Sequence[str]) -> GuardedPorts:
    """Guard the unit and the channels of ``ports``; ``names`` has a name for each output."""
    unit = ports.unit
    sinks = cast("tuple[Channel | AssumedSink | Discard, ...]", ports.outputs)
    written = [sink.channel if isinstance(sink, AssumedSink) else sink for sink in sinks]
    guard = Guard(unit, ports.inputs, [sink for sink in written if isinstance(sink, Channel)])
    guarded = cast("GuardedUnit", unit)
    guarded.guard = guard
    unit.__class__ = _guarded(type(unit))  # type: ignore[arg-type]
    for source in ports.inputs:
        source.__class__ = GuardedReads
    outputs = tuple(
        GuardedSink(sink, name, stream_type, guard, functional=ports.functional)
        for sink, name, stream_type in zip(sinks, names, ports.output_types, strict=True)
    )
    return GuardedPorts(**{**vars(ports), "outputs": outputs})

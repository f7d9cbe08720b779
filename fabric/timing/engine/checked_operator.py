"""The unit and the channel ends of a checked operator.

Only the fabric sets the unit, and an operator must make progress, await one operation at a time in
its own task, and send values of its stream's type. Channels that it reads get a class with checks.

Source of the nesting rule: Streaming Tensor Programs, section 3.1; bare stops are this project's.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from operator import index
from types import CodeType
from typing import Any, Final, TypeAlias, TypeVar

from trio.lowlevel import current_task
from typing_extensions import override

from fabric.graph.values.fit import MOST_CYCLES, described, element_misfit, freeze, whole
from fabric.graph.values.stream_type import StreamType
from fabric.graph.values.value import Element, Empty
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import line_in, written_by_us
from fabric.timing.engine.channel import AssumedSink, Channel, Discard
from fabric.timing.engine.unit import Unit, as_cycle

Result = TypeVar("Result")


class _Stray(Refusal, SystemExit):
    """Ends a thread silently: the operator reports the error."""


class Calls:
    """The operations of one unit on its channels: each is awaited before the next one."""

    __slots__ = ("_code", "_held", "_instruction", "_operation", "_stray", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit: Final = unit
        self._operation: str | None = None
        self._code: CodeType | None = None
        self._instruction = 0
        self._held: Coroutine[object, None, object] | None = None
        self._stray: Refusal | None = None

    def begin(self, operation: str) -> None:
        """Note that the caller's caller has to await ``operation``.

        Raises:
            Refusal: the previous operation was not awaited.
        """
        if self._operation is not None or self._stray is not None:
            self.end()
        frame = sys._getframe(2)
        self._operation = operation
        self._code = frame.f_code
        self._instruction = frame.f_lasti

    def hold(self, call: Coroutine[object, None, Result]) -> Coroutine[object, None, Result]:
        """Return ``call``, the coroutine of the latest operation."""
        self._held = call
        return call

    def awaited(self) -> None:
        """Note that the operation is awaited.

        Raises:
            Refusal: by another task.
        """
        self._operation = self._held = None
        self.check_task()

    def check_task(self) -> None:
        """Refuse calls from other threads and tasks."""
        try:
            asking = current_task()
        except RuntimeError:
            asking = None
        if asking is not self._unit.strand.task:
            who = "a thread" if asking is None else "a task"
            # Who has started it may never hear of what it raises.
            self._stray = _Stray(
                f"{who} of its own uses its channels: expected the operator, which awaits in turn"
            )
            raise self._stray

    def end(self) -> None:
        """Refuse operations that the operator itself has not awaited."""
        if self._stray is not None:
            raise self._stray
        if self._operation is not None:
            operation = self._operation
            self.drop()
            assert self._code is not None
            raise Refusal(
                f"{operation}() is not awaited: expected `await` at once",
                place=line_in(self._code, self._instruction),
            )

    def drop(self) -> None:
        """Close an operation that was not awaited, so that Python does not warn."""
        self._operation = None
        if self._held is not None:
            self._held.close()
            self._held = None


AnyUnit = TypeVar("AnyUnit", bound=Unit)

_LOOKS: Final = 10
"""Consecutive looks without progress before the operator is stopped."""

_REACH_STEPS: Final = 10
"""A wait for a cycle takes as long as ten charges on the host."""

_ours: Final[set[CodeType]] = set()
"""The fabric's functions that may set attributes."""

_set: Final = object.__setattr__
_set_now: Final[Callable[[Unit, int], None]] = vars(Unit)["now"].__set__
_set_busy_cycles: Final[Callable[[Unit, int], None]] = vars(Unit)["busy_cycles"].__set__


class Circling(BaseException):
    """Ends an operator that charges or waits for cycles endlessly: a livelock of one unit."""


class CheckedUnit(Unit):
    """Base class of the units of checked operators; see ``unit_class``.

    Attributes:
        shown: channels whose next element was peeked.
        most_steps: charges, or a tenth as many waits for a cycle, without progress.
        steps_left: until the next look; then progress at the last look, and looks without progress.
    """

    __slots__ = ()

    calls: Calls
    shown: set[Channel]
    reads: Sequence[Channel]
    writes: Sequence[Channel]
    most_steps: int
    steps_left: list[int]

    @override
    def __setattr__(self, name: str, value: object) -> None:
        code = sys._getframe(1).f_code
        if code not in _ours:
            if not written_by_us(code):
                raise Refusal(
                    f"{name} of its unit is set to {described(value)}: expected charge(cycles) "
                    "for work; waits are counted by themselves"
                )
            _ours.add(code)
        _set(self, name, value)

    @override
    def charge(self, cycles: int) -> None:
        if type(cycles) is not int or not 0 <= cycles < MOST_CYCLES - self.now:
            cycles = self._cycles(cycles)
        _set_now(self, self.now + cycles)
        _set_busy_cycles(self, self.busy_cycles + cycles)
        self.steps_left[0] = left = self.steps_left[0] - 1
        if left < 0:
            self._look()

    @override
    def reached(self) -> None:
        self.steps_left[0] -= _REACH_STEPS
        if self.steps_left[0] < 0:
            self._look()

    def _cycles(self, cycles: object) -> int:
        result = whole(cycles, "cycles are charged")
        if result >= MOST_CYCLES - self.now:
            raise Refusal(
                f"{described(result)} cycles are charged: expected a clock that stays below 2**60"
            )
        return result

    def let_go(self) -> None:
        """Stop counting steps and calls: the operator has failed."""
        self.calls.drop()
        self.steps_left[0] = MOST_CYCLES

    def _look(self) -> None:
        """Note whether an element was received or sent, or a tile moved, since the last call."""
        moved = self.off_chip_bytes
        moved += sum(channel.taken for channel in self.reads)
        moved += sum(channel.sent for channel in self.writes)
        _, before, looks = self.steps_left
        if moved == before and looks == _LOOKS:
            raise Circling
        self.steps_left[:] = self.most_steps // _LOOKS, moved, looks + 1 if moved == before else 1


def unit_class(kind: type[AnyUnit], *, checked: bool) -> type[AnyUnit]:
    """Return the class of units of this kind, with checks if ``checked``."""
    if not checked:
        return kind
    if kind not in _checked:
        slots = ("calls", "most_steps", "reads", "shown", "steps_left", "writes")
        _checked[kind] = type(f"Checked{kind.__name__}", (CheckedUnit, kind), {"__slots__": slots})
    made = _checked[kind]
    assert issubclass(made, kind)
    return made


_checked: Final[dict[type[Unit], type]] = {}
"""Checked classes by class of units."""


Reading: TypeAlias = Any
"""A channel whose consumer is a ``CheckedUnit``, and its class."""


def check_reads(channel: Channel) -> None:
    """Check the reading end of ``channel``, whose consumer is a ``CheckedUnit``."""
    kind = channel.__class__
    if kind not in _channel_classes:
        _channel_classes[kind] = _with_checked_reads(kind)
    channel.__class__ = _channel_classes[kind]


_channel_classes: Final[dict[type, Reading]] = {}
"""Checked classes by class of channels."""


def _with_checked_reads(kind: Reading) -> Reading:
    def receive(self: Reading) -> object:
        calls = self.consumer.calls
        calls.begin("receive")
        return calls.hold(received(self))

    async def received(self: Reading) -> Element | None:
        unit = self.consumer
        unit.calls.awaited()
        element: Element | None = await kind.receive(self)
        unit.shown.discard(self)
        if element is not None:
            freeze(element[0])
        return element

    def peek(self: Reading) -> object:
        calls = self.consumer.calls
        calls.begin("peek")
        return calls.hold(peeked(self))

    async def peeked(self: Reading) -> Element | None:
        unit = self.consumer
        unit.calls.awaited()
        element: Element | None = await kind.peek(self)
        if element is not None:
            unit.shown.add(self)
            freeze(element[0])
        return element

    def take(self: Reading) -> Element:
        unit = self.consumer
        unit.calls.check_task()
        if self not in unit.shown:
            raise Refusal(f"{self.name} is taken from unseen: expected `await peek()` before")
        unit.shown.discard(self)
        element: Element = kind.take(self)
        return element

    def hear(self: Reading) -> Element:
        self.consumer.calls.check_task()
        # What is there by now hangs on the host, but for who has waited for the cycle.
        raise Refusal(f"{self.name} is heard of: expected `await peek()` and take()")

    body = {"__slots__": (), "hear": hear, "peek": peek, "receive": receive, "take": take}
    return type(f"Read{kind.__name__}", (kind,), body)


class CheckedSink:
    """Wraps a channel and refuses values that are not elements of its stream.

    Elements are numbered from 0, including bare stops.
    """

    __slots__ = (
        "_calls",
        "_functional",
        "_last",
        "_name",
        "_reserved",
        "_sent",
        "_sink",
        "_type",
    )

    def __init__(
        self,
        sink: Channel | AssumedSink | Discard,
        name: str,
        stream_type: StreamType,
        calls: Calls,
        *,
        functional: bool,
    ) -> None:
        self._sink: Final = sink
        self._name: Final = name
        self._type: Final = stream_type
        self._calls: Final = calls
        self._functional: Final = functional
        self._sent = 0
        self._reserved = 0
        # The level of the last stop: nothing is open below it. Before the first element nothing is.
        self._last = stream_type.rank

    def send(self, element: Element) -> Awaitable[None]:
        """See ``Channel.send``."""
        self._calls.begin("send")
        return self._calls.hold(self._send(element))

    async def _send(self, element: object) -> None:
        self._calls.awaited()
        element = self._checked(element)
        value, stop = element
        if isinstance(value, Empty):
            await self._sink.send_bare(stop, value.dimension)
        else:
            await self._sink.send(element)

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        self._calls.begin("send_at")
        return self._calls.hold(self._send_at(element, requested_cycle))

    async def _send_at(self, element: object, requested_cycle: object) -> None:
        self._calls.awaited()
        try:
            cycle = as_cycle(requested_cycle)
        except TypeError:
            raise self._refusal(
                f"is asked for at cycle {described(requested_cycle)}: expected an integer"
            ) from None
        element = self._checked(element)
        if isinstance(element[0], Empty):
            raise Refusal(f"a bare stop is sent on {self._name} by send_at: expected send_bare")
        await self._sink.send_at(element, cycle)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """See ``Channel.send_bare``."""
        self._calls.begin("send_bare")
        return self._calls.hold(self._send((Empty(empty_dimension), level)))

    def reserve(self) -> Awaitable[None]:
        """See ``Channel.reserve``."""
        self._calls.begin("reserve")
        return self._calls.hold(self._reserve())

    async def _reserve(self) -> None:
        self._calls.awaited()
        await self._sink.reserve()
        self._reserved += 1

    def put(self, element: Element) -> None:
        """See ``Channel.put``."""
        self._calls.end()
        self._calls.check_task()
        if not self._reserved:
            raise self._refusal("is put without a slot: expected `await reserve()` before")
        element = self._checked(element)
        self._reserved -= 1
        self._sink.put(element)

    def close(self) -> None:
        """Refuse: a stream ends with its operator."""
        raise Refusal(f"{self._name} is closed by its operator: expected the end of run() to do so")

    def finish(self) -> None:
        """Close the channel at the end of the operator.

        Raises:
            Refusal: a dimension is still open.
        """
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
            stop = self._level(stop)
        element = value, stop
        wrong = element_misfit(element, self._last, self._type, self._functional)
        if wrong is not None:
            raise self._refusal(wrong)
        freeze(value, sent=True)
        self._last = stop
        self._sent += 1
        return value, stop

    def _level(self, stop: object) -> int:
        if not isinstance(stop, bool):
            try:
                return operator.index(stop)  # type: ignore[arg-type]
            except TypeError:
                pass
        raise self._refusal(f"has a stop of level {described(stop)}: expected an integer")

    def _refusal(self, what: str) -> Refusal:
        return Refusal(f"element {self._sent:,} of {self._name} {what}", counted=True)


class LaterSink:
    """Wraps a sink; cycles of ``send_at`` count from a later one than 0.

    Attributes:
        next_cycle: one after the latest requested cycle, or the first cycle.
    """

    __slots__ = (
        "_since_cycle", "_sink", "close", "next_cycle", "put", "reserve", "send", "send_bare"
    )  # fmt: skip

    def __init__(
        self, sink: Channel | AssumedSink | CheckedSink | Discard, since_cycle: int
    ) -> None:
        self._sink: Final = sink
        self._since_cycle: Final = since_cycle
        self.next_cycle = since_cycle
        self.send: Final = sink.send
        self.send_bare: Final = sink.send_bare
        self.reserve: Final = sink.reserve
        self.put: Final = sink.put
        self.close: Final = sink.close

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        cycle = requested_cycle + self._since_cycle
        self.next_cycle = max(self.next_cycle, index(cycle) + 1)
        return self._sink.send_at(element, cycle)

"""The depth, latencies and counters of a channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from fabric.graph.hardware.latency import ONE_CYCLE, Hop
from fabric.graph.values.value import Element, Empty
from fabric.messages.telling.causes import Operation
from fabric.messages.telling.errors import ConfigurationError
from fabric.timing.engine.channel_rule import set_out_at, shown_from
from fabric.timing.engine.unit import Unit, Wait

if TYPE_CHECKING:
    from fabric.timing.engine.clock import VirtualClock

NOTHING: Final[deque[Any]] = deque(maxlen=0)
"""Shared by channels that are closed or not opened."""

GRANT: Final = 256
"""Credits granted at a time.

Deep channels use memory only when they fill, and a unit that fills one lets trio run other tasks.
"""


class ChannelCounters:
    """A FIFO of ``depth`` elements from one unit to another.

    Attributes:
        forward_cycles: from the sending of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which its credit is usable.
        interval_cycles: the least between two elements at one end; 0 or 1.
        next_send_cycle, next_take_cycle: earliest cycles of the next ones; 0 without an interval.
        queue: (visible cycle, element), oldest first.
        credits: usable cycles, oldest first.
        empty_cycles: cycles the consumer waited for an element or the end.
        full_cycles: cycles the producer waited for the consumer to take an element.
        credit_cycles: cycles it then waited for the credit on its way back.
        closed_cycle: the producer's final clock; one hop later with an interval.
        left_over: values that came after the consumer's operator had ended.
    """

    __slots__ = (
        "_bare_stops",
        "_last_usable_cycle",
        "_peak_slots",
        "_receiving",
        "_recent",
        "_returned",
        "_sending",
        "_spent",
        "_ungranted",
        "backward_cycles",
        "clock",
        "closed_cycle",
        "consumer",
        "credit_cycles",
        "credits",
        "depth",
        "empty_cycles",
        "ended",
        "forward_cycles",
        "full_cycles",
        "interval_cycles",
        "left_over",
        "name",
        "next_send_cycle",
        "next_take_cycle",
        "producer",
        "queue",
        "reader",
        "way",
        "writer",
    )

    def __init__(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        hop: Hop = ONE_CYCLE,
        *,
        opened: bool = True,
    ) -> None:
        if depth < 1:
            raise ConfigurationError(f"channel {name}: depth is {depth}: expected at least 1")
        self.name: Final = name
        self.depth = depth
        self.producer: Final = producer
        self.consumer: Final = consumer
        self.clock: Final = clock
        self.forward_cycles: Final = hop.forward_cycles
        self.backward_cycles: Final = hop.backward_cycles
        self.interval_cycles = 0
        self.next_send_cycle = self.next_take_cycle = 0
        self.queue: deque[tuple[int, Element]] = NOTHING
        self.credits: deque[int] = NOTHING
        self._returned: deque[int] = NOTHING
        self._ungranted = 0
        self._recent: deque[int] = NOTHING
        self._peak_slots = 1
        self._last_usable_cycle = 0
        self._spent = 0
        self._bare_stops = 0
        self.left_over = 0
        self.empty_cycles = 0
        self.full_cycles = 0
        self.credit_cycles = 0
        self.reader: Unit | None = None
        self.writer: Unit | None = None
        self.closed_cycle: int | None = None
        self.ended = False
        if opened:
            self.open()

    def open(self) -> None:
        """Make room for elements and credits."""
        self.queue = deque()
        self.credits = deque([0] * min(self.depth, GRANT))
        self._returned = deque()
        self._ungranted = self.depth - len(self.credits)
        # Credits of the latest dequeues, for as many slots as were ever in use at once: while the
        # oldest of them was not yet usable when a new element was sent, one more is kept. None are
        # where all slots have been in use.
        self._recent = deque((0,) if self.depth > 1 else ())
        self._receiving = Wait(Operation.RECEIVE, (self,), 0)
        self._sending = Wait(Operation.SEND, (self,), 0)

    @property
    def elements(self) -> int:
        """Values dequeued so far."""
        held = self.held_elements
        bare = self._bare_stops - (held - self.held_values) if held else self._bare_stops
        return self.taken - bare

    @property
    def under_way(self) -> int:
        """Elements sent that are still on the links of a network."""
        return 0

    @property
    def held_elements(self) -> int:
        """Elements sent and not dequeued, bare stops included."""
        return len(self.queue) + self.under_way

    @property
    def held_values(self) -> int:
        """Values sent and not dequeued."""
        return sum(
            element.__class__ is not tuple or element[0].__class__ is not Empty
            for _, element in self.queue
        )

    @property
    def taken(self) -> int:
        """Elements dequeued so far, bare stops included."""
        return self._spent + len(self._returned)

    @property
    def sent(self) -> int:
        """Elements sent so far, bare stops included."""
        return self.taken + self.held_elements

    @property
    def head_cycle(self) -> int:
        """When the next element is visible."""
        return shown_from(self.queue[0][0], self.next_take_cycle)

    @property
    def head_sent_cycle(self) -> int:
        """When the next element was sent; at the earliest one hop before it is visible."""
        return set_out_at(self.head_cycle, self.forward_cycles)

    @property
    def last_sent_cycle(self) -> int | None:
        """When the latest queued element was sent; None if the queue is empty."""
        return set_out_at(self.queue[-1][0], self.forward_cycles) if self.queue else None

    @property
    def last_taken_cycle(self) -> int | None:
        """The consumer's clock at its last dequeue; None before the first."""
        usable = self._recent[-1] if self._recent else self._last_usable_cycle
        return usable - self.backward_cycles if usable else None

    @property
    def peak_occupancy(self) -> int:
        """The most slots in use at once, including slots whose credit is on its way back.

        A slot counts from one hop before its element is visible. Elements that were never dequeued
        count; elements that came after the consumer's operator had ended do not.
        """
        return max(self._peak_slots if self.taken else 0, self.held_elements)

    def count_sent(self, bare_stops: int, full_cycles: int, credit_cycles: int) -> None:
        """Add counts of the producer from elsewhere."""
        self._bare_stops = bare_stops
        self.full_cycles = full_cycles
        self.credit_cycles = credit_cycles

    def hold(self, queue: Iterable[tuple[int, Element]]) -> None:
        """Fill the queue with elements and their visible cycles."""
        self.queue = deque(queue) or NOTHING

    def count_taken(
        self,
        taken: int,
        empty_cycles: int,
        left_over: int,
        peak_slots: int,
        last_usable_cycle: int,
        *,
        ended: bool,
    ) -> None:
        """Add counts of the consumer from elsewhere."""
        self._spent = taken - len(self._returned)
        self.empty_cycles = empty_cycles
        self.left_over = left_over
        self._recent = NOTHING
        self._peak_slots = peak_slots
        self._last_usable_cycle = last_usable_cycle
        self.ended = ended

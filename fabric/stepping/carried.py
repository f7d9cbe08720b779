"""What went through one channel up to a cycle, and what is known of later."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.engine.channel_rule import set_out_at, usable_from, visible_from
from fabric.engine.networked_channel import NetworkedChannel
from fabric.values.value import Element, Empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.engine.observer import Sent, Watched

__all__ = ["Carried", "Held", "is_bare"]

_NOT_REQUESTED: Final = -1


class Held(NamedTuple):
    """An element that was sent and not dequeued.

    Attributes:
        number: of it in its stream, from 0 on, bare stops included, as in traces.
        value: a tile, say; ``Empty`` where it is a bare stop.
        stop: the level of the stop that rides on it; 0 for none.
        sent_cycle: the producer's clock when it was sent.
        visible_cycle: from which on the consumer can see it; None while it is on links that others
            use, too: what is sent later may delay it.
    """

    number: int
    value: object
    stop: int
    sent_cycle: int
    visible_cycle: int | None


class Moved(NamedTuple):
    """An element that was dequeued.

    Attributes:
        element: it.
        sent: how it was sent.
        cycle: in which it was dequeued.
        left_over: by nobody, since the operator had ended.
    """

    element: Element
    sent: Sent
    cycle: int
    left_over: bool


class Carried:
    """One channel, up to a cycle; what was dequeued later is kept until that has come.

    Attributes:
        watched: the channel.
        later: what was dequeued after that cycle, in order.
        elements: dequeued, bare stops included.
        values: dequeued, without them.
        left_over: values that were dequeued by nobody.
        last_taken_cycle: of the last dequeue by the operator.
        peak_slots: the most in use at once when one of them was sent.
        empty_cycles, full_cycles, credit_cycles: waited for it.
    """

    def __init__(self, watched: Watched, forward_cycles: int, backward_cycles: int) -> None:
        self.watched: Final = watched
        self._forward_cycles: Final = forward_cycles
        self._backward_cycles: Final = backward_cycles
        self.later: Final[deque[Moved]] = deque()
        self.elements = 0
        self.values = 0
        self.left_over = 0
        self.last_taken_cycle: int | None = None
        self.peak_slots = 1
        self.empty_cycles = 0
        self.full_cycles = 0
        self.credit_cycles = 0
        self._dequeues: list[int] = []

    def go_to(self, cycle: int, depth: int) -> None:
        """Count what was dequeued up to ``cycle``."""
        later = self.later
        while later and later[0].cycle <= cycle:
            moved = later.popleft()
            value = not is_bare(moved.element)
            if moved.left_over:
                self.left_over += value
            else:
                self._count_slots(moved)
                self.last_taken_cycle = moved.cycle
            self._dequeues.append(moved.cycle)
            self.elements += 1
            self.values += value
        if len(self._dequeues) > 2 * depth + 64:
            del self._dequeues[:-depth]

    def _count_slots(self, moved: Moved) -> None:
        """Count who shared the channel with ``moved``: credits that were not back when it set out.

        An element never sets out before all but ``depth`` of those before it are back.
        """
        set_out = self._set_out(moved.sent)
        kept = self._dequeues
        back = bisect_right(kept, set_out, key=self._usable)
        self.peak_slots = max(self.peak_slots, len(kept) + 1 - back)

    def held(self, cycle: int) -> Iterator[Held]:
        """Yield what is held in ``cycle``, oldest first."""
        number = self.elements
        for moved in self.later:
            if moved.sent[1] > cycle:
                return
            yield self._held(number, moved.element, moved.sent)
            number += 1
        held = self.watched.held
        arrived = len(held) - under_way(self.watched)
        for place, (element, sent, _) in enumerate(held):
            if sent[1] > cycle:
                return
            found = self._held(number, element, sent)
            yield found if place < arrived else found._replace(visible_cycle=None)
            number += 1

    def newest_sent_cycle(self, cycle: int) -> int | None:
        """Return when the newest of what is held in ``cycle`` set out; None where nothing is."""
        sent = [moved.sent for moved in self.later] + [each[1] for each in self.watched.held]
        newest = [each for each in sent if each[1] <= cycle][-1:]
        return self._set_out(newest[0]) if newest else None

    def _set_out(self, sent: Sent) -> int:
        """Return when an element set out: as it was sent, or later where a cycle was asked for."""
        if isinstance(self.watched, NetworkedChannel):
            return sent[1]
        return set_out_at(self._visible(sent), self._forward_cycles)

    def _held(self, number: int, element: Element, sent: Sent) -> Held:
        return Held(number, *element, sent[1], self._visible(sent))

    def _visible(self, sent: Sent) -> int:
        requested_cycle = sent[3] if len(sent) > 3 else _NOT_REQUESTED
        return visible_from(sent[1], self._forward_cycles, requested_cycle)

    def _usable(self, taken_cycle: int) -> int:
        return usable_from(taken_cycle, self._backward_cycles)

    def next_cycle(self, after: int) -> int | None:
        """Return the first cycle after ``after`` in which something is known to move."""
        cycles = [moved.cycle for moved in self._first_later()]
        sent = (each for each in self._sent() if each > after)
        cycles.extend(each for each in (next(sent, None),) if each is not None)
        return min(cycles, default=None)

    def _first_later(self) -> tuple[Moved, ...]:
        return (self.later[0],) if self.later else ()

    def _sent(self) -> Iterator[int]:
        yield from (moved.sent[1] for moved in self.later)
        yield from (sent[1] for _, sent, _ in self.watched.held)

    def taken_cycle(self, values: int) -> int | None:
        """Return when the operator dequeued its value number ``values``, from 1 on, if it did."""
        count = self.values - self.left_over
        for moved in self.later:
            count += not is_bare(moved.element) and not moved.left_over
            if count == values:
                return moved.cycle
        return None

    def sent_cycle(self, values: int) -> int | None:
        """Return when value number ``values``, from 1 on, was sent, if it was."""
        count = self.values
        sent = [(moved.element, moved.sent) for moved in self.later]
        sent += [(element, stamps) for element, stamps, _ in self.watched.held]
        for element, stamps in sent:
            count += not is_bare(element)
            if count == values:
                return stamps[1]
        return None


def under_way(channel: Watched) -> int:
    """Return how many elements of a channel are on links that others use, too."""
    return channel.under_way if isinstance(channel, NetworkedChannel) else 0


def is_bare(element: Element) -> bool:
    """Whether ``element`` is a stop without a value."""
    return element[0].__class__ is Empty

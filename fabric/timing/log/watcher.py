"""An observer that writes rows."""

from __future__ import annotations

from struct import Struct, calcsize
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.graph.values.value import Empty
from fabric.timing.engine.observer import ELSEWHERE, Observer
from fabric.timing.log.log_rows import (
    ALLOCATE,
    ARRIVAL,
    BURST,
    CHOICE,
    END,
    FINISH,
    IDLE,
    LATE,
    LEFT_OVER,
    LINKS,
    LONG_COLUMNS,
    RESERVE,
    SHORT_COLUMNS,
    SIZE,
    UNKNOWN,
    UNTIL,
    Rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.observer import Sent, Stamp, Taken, Transferred, Watched
    from fabric.timing.engine.unit import Unit

_pack_short: Final = Struct(f"={len(SHORT_COLUMNS)}q").pack_into
_pack_long: Final = Struct(f"={len(LONG_COLUMNS)}q").pack_into
_SHORT_BYTES: Final = calcsize(f"={len(SHORT_COLUMNS)}q")
_LONG_BYTES: Final = calcsize(f"={len(LONG_COLUMNS)}q")


class Watcher(Observer):
    """Writes a row for each element at its dequeue, and for each wait without an element."""

    def __init__(
        self,
        rows: Rows,
        keeps: Callable[[str], bool] = lambda _: True,
        check: Callable[[list[str]], object] = lambda _: None,
    ) -> None:
        """Write into ``rows`` the events of channels of units whose names ``keeps`` accepts.

        ``check`` receives the names of all units, and may refuse them.
        """
        self._keeps: Final = keeps
        self._check: Final = check
        self._rows: Final = rows
        self._channels: dict[int, Watched] = {}
        self._elements: dict[int, int] = {}
        self._carried: dict[int, tuple[int, int]] = {}  # by channel: elements, bytes of the last
        self._next_order: Callable[[], int]

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        self._check([unit.name for unit in units])
        self._next_order = next_order

    @override
    def watch(self, channel: Watched) -> Transferred | None:
        keeps = self._keeps
        if not (keeps(channel.producer.name) or keeps(channel.consumer.name)):
            return None
        number = channel.number
        self._channels[number] = channel
        elements = self._elements
        elements[number] = 0
        rows, flush = self._rows.short, self._rows.flush

        def transferred(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
            if taken is not None or len(sent) > 3:
                self._write_long(number, element, sent, seen, taken or seen[:2])
                return
            value, stop = element
            if value.__class__ is Empty:
                stop = ~stop
            count = elements[number]
            elements[number] = count + 1
            offset = rows.offset
            # Names for all of them: a call with stars takes half as long again.
            order, now, waited = seen
            sent_order, sent_cycle, send_waited = sent
            _pack_short(
                rows.buffer, offset, number, count, stop, order, now, waited, sent_order,
                sent_cycle, send_waited,
            )  # fmt: skip
            rows.offset = offset = offset + _SHORT_BYTES
            if offset == rows.limit:
                flush()

        return transferred

    @override
    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        seen = seen or (LEFT_OVER, cycle, 0)
        self._write_long(channel.number, element, sent, seen, (LEFT_OVER, cycle))

    @override
    def fetched(self, channel: Watched, element: Element, sent: Sent) -> None:
        self._write_long(channel.number, element, sent, (ELSEWHERE, 0, 0), (ELSEWHERE, 0))

    @override
    def idled(self, channel: Watched, stamp: Stamp, until_cycle: int) -> None:
        self._rows.operation(IDLE, channel.consumer.index, stamp, channel.number, until_cycle)

    @override
    def ended(self, channel: Watched, stamp: Stamp) -> None:
        self._rows.operation(END, channel.consumer.index, stamp, channel.number)

    @override
    def burst(self, unit: Unit, requests: int, stamp: Stamp) -> None:
        self._rows.operation(BURST, unit.index, stamp, amount=requests)

    @override
    def allocated(self, unit: Unit, size_bytes: int, stamp: Stamp) -> None:
        if stamp[2]:
            self._rows.operation(ALLOCATE, unit.index, stamp, amount=size_bytes)

    @override
    def requested(self, channel: Watched, order: int, since: Stamp | None, cycles: int) -> None:
        reading, cycle, _ = since or (UNKNOWN, 0, 0)
        stamp = order, cycle, reading
        self._rows.operation(LATE, channel.producer.index, stamp, channel.number, cycles)

    @override
    def sent_over_links(self, channel: Watched, size_bytes: int) -> None:
        element, last_bytes = self._carried.get(channel.number, (0, -1))
        self._carried[channel.number] = element + 1, size_bytes
        if size_bytes != last_bytes:
            unit = channel.producer
            stamp = element, unit.now, 0
            self._rows.operation(SIZE, unit.index, stamp, channel.number, size_bytes)

    @override
    def waited_for_links(self, channel: Watched, cycles: int) -> None:
        unit = channel.consumer
        self._rows.operation(LINKS, unit.index, (0, unit.now, 0), channel.number, cycles)

    @override
    def arrived(self, channel: Watched, stamp: Stamp, element: int) -> None:
        self._rows.operation(ARRIVAL, channel.consumer.index, stamp, channel.number, element)

    @override
    def was_busy(self, unit: Unit, stamp: Stamp, cycles: int) -> None:
        self._rows.operation(UNTIL, unit.index, stamp, amount=cycles)

    @override
    def chose(self, unit: Unit, stamp: Stamp) -> None:
        self._rows.operation(CHOICE, unit.index, stamp)

    @override
    def finished(self, unit: Unit, stamp: Stamp) -> None:
        self._rows.operation(FINISH, unit.index, stamp)

    def next_order(self) -> int:
        """Draw a number; later events have higher ones."""
        return self._next_order()

    def finish(self) -> None:
        """Record reservations without elements at the end of the run."""
        self._rows.operations.extend(self.reserved)

    @property
    def reserved(self) -> list[tuple[int, int, int, int, int, int, int]]:
        """An operation row for each reserved slot without an element."""
        return [
            (RESERVE, channel.producer.index, *stamp, channel.number, 0)
            for channel in self._channels.values()
            for stamp in channel.reserved
        ]

    @property
    def pending(self) -> list[tuple[int, ...]]:
        """A long row for each held element; -1 for events that have not happened."""
        rows = []
        for channel in self._channels.values():
            held = enumerate(channel.held, self._elements[channel.number])
            for number, (element, sent, seen) in held:
                # A user's operator may have sent something else.
                value, stop = element if element.__class__ is tuple else (element, 0)
                level = ~stop if isinstance(value, Empty) else stop
                order, cycle, waited = seen or (-1, -1, 0)
                key = channel.number, number, level
                rows.append((*key, -1, -1, waited, *_whole(sent), order, cycle))
        return rows

    def _write_long(
        self, number: int, element: Element, sent: Sent, seen: Stamp, taken: Taken
    ) -> None:
        value, stop = element
        if value.__class__ is Empty:
            stop = ~stop
        count = self._elements[number]
        self._elements[number] = count + 1
        rows = self._rows.long
        offset = rows.offset
        order, cycle, waited = seen
        _pack_long(
            rows.buffer, offset, number, count, stop, *taken, waited, *_whole(sent), order,
            cycle,
        )  # fmt: skip
        rows.offset = offset = offset + _LONG_BYTES
        if offset == rows.limit:
            self._rows.flush()


def _whole(sent: Sent) -> Sent:
    return sent if len(sent) > 3 else (*sent, -1, sent[0], sent[1])

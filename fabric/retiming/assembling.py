"""From the rows of a run, as they were written while it went on, to its record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.retiming import events as e
from fabric.retiming import rows as r

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters

__all__ = ["Events", "Rows", "assembled", "events_of"]

_ORDER_BITS: Final = 40


class Rows(NamedTuple):
    """All rows of a run, in any order.

    Attributes:
        transfers: [elements, columns of long rows].
        operations: [operations, columns of operations].
    """

    transfers: Counters
    operations: Counters


class Events(NamedTuple):
    """Events in the order of units and of each unit's own, one array a column.

    Attributes:
        unit: whose it is.
        code: channel and kind.
        work: cycles of work since the event before.
        amount: where it is no work; see ``events``.
        since: of a request, the place here of the reading that it counts from.
    """

    unit: Counters
    code: Counters
    work: Counters
    amount: Counters
    since: Counters


class _Columns(NamedTuple):
    """Events in any order, one array a column.

    Attributes:
        unit: whose it is.
        order: its number among the unit's operations.
        rank: of events with one number, this comes first, second and so on.
        code: channel and kind.
        cycle: the unit's clock after it.
        spent: cycles of those since the event before that were not work.
        amount: where it is no work; see ``events``.
        since: of a request, the number of the reading that it counts from.
    """

    unit: Counters
    order: Counters
    rank: Counters
    code: Counters
    cycle: Counters
    spent: Counters
    amount: Counters
    since: Counters


def assembled(parts: Iterable[Events], units: int) -> tuple[Counters, Counters]:
    """Return where each unit's events begin, and the events; see ``Record``.

    Args:
        parts: all events; what a unit did first is in no later part than what it did then, and
            what it asked for in the same part as the reading it counts from.
        units: how many there are.
    """
    paired = [_paired(part, units) for part in parts]
    counts = np.array([count for count, _ in paired])
    first = np.concatenate([[0], np.cumsum(counts.sum(axis=0))]).astype(np.int64)
    events = np.empty((int(first[-1]), 2), np.int64)
    # Parts are given back as soon as they are copied: together they are as large as the whole.
    paired.reverse()
    begin = first[:-1].copy()
    while paired:
        count, pairs = paired.pop()
        _place(events, begin, count, pairs)
        begin += count
    return first, events


def _place(events: Counters, first: Counters, count: Counters, pairs: Counters) -> None:
    """Copy a part, of which each unit has ``count``, to where those of its units begin."""
    its = np.flatnonzero(count)
    ends = np.cumsum(count)[its]
    begins = ends - count[its]
    shift = first[its] - begins
    # Units that follow each other here and there are copied at once.
    apart = np.flatnonzero(np.diff(shift, prepend=-1, append=-1))
    for start, stop in zip(apart[:-1].tolist(), apart[1:].tolist(), strict=True):
        source = slice(int(begins[start]), int(ends[stop - 1]))
        to = int(first[its[start]])
        events[to : to + source.stop - source.start] = pairs[source]


def _paired(events: Events, units: int) -> tuple[Counters, Counters]:
    """Return how many each unit has, and them; work that one has no place for stands before it."""
    unit, code, work, amount, since = events
    kinds = code & e.KIND
    own = kinds <= e.LAST_WORKED
    amount = np.where(own, work, amount)
    apart = ~own & (work > 0)
    at = np.flatnonzero(apart)
    late = np.flatnonzero(kinds == e.LATE)
    if len(late):
        place = np.arange(len(code)) + np.cumsum(apart)
        code[late] = (place[late] - place[since[late]]) << e.SHIFT | e.LATE
    count = np.bincount(unit, minlength=units) + np.bincount(unit[at], minlength=units)
    pairs = np.empty((len(code) + len(at), 2), np.int64)
    if len(at):
        code, amount = np.insert(code, at, e.WORK), np.insert(amount, at, work[at])
    pairs[:, 0], pairs[:, 1] = code, amount
    return count, pairs


def events_of(rows: Rows, producers: Counters, consumers: Counters, forward: Counters) -> Events:
    """Return what units that were tasks did.

    Args:
        rows: of the run.
        producers: by channel, the unit that sends.
        consumers: by channel, the unit that receives.
        forward: by channel, cycles from the sending of an element until it is visible.
    """
    parts = [
        *_of_transfers(rows.transfers, producers, consumers),
        *_of_operations(rows, forward),
    ]
    every = _Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    sequence = np.lexsort((every.rank, every.order, every.unit))
    every = _Columns(*(column[sequence] for column in every))
    unit, cycle, spent = every.unit, every.cycle, every.spent
    work = np.diff(cycle, prepend=0) - spent
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    work[begins] = cycle[begins] - spent[begins]
    return Events(unit, every.code, work, every.amount, _places(every))


def _places(events: _Columns) -> Counters:
    """Return, of requests, the places of the readings that they count from."""
    kinds = events.code & e.KIND
    readings = np.flatnonzero(kinds == e.NOTE)
    # The numbers of operations grow within a unit only.
    by_order = readings[np.argsort(events.order[readings])]
    places = np.zeros(len(kinds), np.int64)
    late = np.flatnonzero(kinds == e.LATE)
    places[late] = by_order[np.searchsorted(events.order[by_order], events.since[late])]
    return places


def _of_transfers(table: Counters, producers: Counters, consumers: Counters) -> list[_Columns]:
    """Return reserving, sending, seeing and taking."""
    column = dict(zip(r.LONG_COLUMNS, table.T, strict=True))
    channel = column["channel"]
    sender, receiver = producers[channel], consumers[channel]
    sent = column["sent_order"] >= 0
    at_once = column["reserved_order"] == column["sent_order"]
    takes_at_once = column["seen_order"] == column["taken_order"]
    taken = column["taken_order"] >= 0
    seen = (column["seen_order"] >= 0) & ~takes_at_once
    zero = np.zeros(len(table), np.int64)

    def events(kind: int, which: Counters, unit: Counters, what: str, spent: Counters) -> _Columns:
        return _Columns(
            unit[which],
            column[f"{what}_order"][which],
            np.full(int(which.sum()), 1),
            channel[which] << e.SHIFT | kind,
            column[f"{what}_cycle"][which],
            spent[which],
            zero[which],
            zero[which],
        )

    send_wait, receive_wait = column["send_wait_cycles"], column["receive_wait_cycles"]
    return [
        events(e.SEND, sent & at_once, sender, "sent", send_wait),
        events(e.RESERVE, sent & ~at_once, sender, "reserved", send_wait),
        events(e.PUT, sent & ~at_once, sender, "sent", zero),
        events(e.TAKE, taken & takes_at_once, receiver, "taken", receive_wait),
        events(e.SEE, seen, receiver, "seen", receive_wait),
        events(e.TAKE, taken & ~takes_at_once, receiver, "taken", zero),
    ]


def _of_operations(rows: Rows, forward: Counters) -> list[_Columns]:
    """Return everything else."""
    table = rows.operations
    column = dict(zip(r.OPERATION_COLUMNS, table.T, strict=True))
    operation, cycle, wait = column["operation"], column["cycle"], column["wait_cycles"]
    zero = np.zeros(len(table), np.int64)

    def events(kind: int, which: int, amount: Counters, spent: Counters = wait) -> _Columns:
        its = operation == which
        channel = np.maximum(column["channel"], 0)
        return _Columns(
            column["unit"][its],
            column["order"][its],
            np.full(int(its.sum()), 1),
            (channel << e.SHIFT | kind)[its],
            cycle[its],
            spent[its],
            amount[its],
            zero[its],
        )

    return [
        events(e.WAIT, r.BURST, wait),
        events(e.WAIT, r.ALLOCATE, wait),
        events(e.END, r.END, zero),
        events(e.RESERVE, r.RESERVE, zero),
        events(e.FINISH, r.FINISH, zero),
        events(e.ARRIVAL, r.ARRIVAL, column["amount"], zero),
        events(e.UNTIL, r.UNTIL, column["amount"]),
        _idle(rows, table[operation == r.IDLE], forward),
        *_requests(rows, table[operation == r.LATE]),
    ]


def _requests(rows: Rows, late: Counters) -> list[_Columns]:
    """Return readings of clocks, and what is to be visible so long after one or in a cycle."""
    transfers = dict(zip(r.LONG_COLUMNS, rows.transfers.T, strict=True))
    column = dict(zip(r.OPERATION_COLUMNS, late.T, strict=True))
    reading, order = column["wait_cycles"], column["order"]
    since = reading >= 0
    # The clock at the request is that before the wait for a slot.
    of_order = np.argsort(transfers["sent_order"])
    at = of_order[np.searchsorted(transfers["sent_order"], order, sorter=of_order)]
    clock = transfers["reserved_cycle"][at] - transfers["send_wait_cycles"][at]
    zero = np.zeros(len(late), np.int64)
    code = np.where(since, e.LATE, e.AT)
    requests = _Columns(column["unit"], order, zero, code, clock, zero, column["amount"], reading)
    _, once = np.unique(reading[since], return_index=True)
    its = np.flatnonzero(since)[once]
    note = np.full(len(its), e.NOTE)
    readings = _Columns(
        column["unit"][its], reading[its], zero[its], note, column["cycle"][its], zero[its],
        zero[its], zero[its],
    )  # fmt: skip
    return [readings, requests]


def _idle(rows: Rows, idle: Counters, forward: Counters) -> _Columns:
    """Return waits for an element that is looked at later, relative to when it is visible."""
    transfers = dict(zip(r.LONG_COLUMNS, rows.transfers.T, strict=True))
    column = dict(zip(r.OPERATION_COLUMNS, idle.T, strict=True))
    channel, order, cycle = column["channel"], column["order"], column["cycle"]
    places = transfers["channel"] << _ORDER_BITS | np.maximum(transfers["seen_order"], 0)
    of_place = np.argsort(places)
    wanted = np.searchsorted(places, channel << _ORDER_BITS | order, sorter=of_place)
    there = wanted < len(places)
    at = of_place[np.minimum(wanted, len(places) - 1)]
    there &= transfers["channel"][at] == channel
    sent = transfers["sent_cycle"][at] + forward[channel]
    visible = np.where(there, np.maximum(sent, transfers["requested_cycle"][at]), cycle)
    return _Columns(
        column["unit"],
        order,
        np.full(len(idle), 1),
        channel << e.SHIFT | e.IDLE,
        cycle,
        column["wait_cycles"],
        cycle - visible,
        np.zeros(len(idle), np.int64),
    )

"""What units did that were tasks: from the rows they left, in any order, to events in theirs.

Rows are given back as they are read: of a long run they are most of what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.log import rows as r
from fabric.retiming import events as e
from fabric.retiming.assembling import Events

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters

__all__ = ["Rows", "events_of"]

_UNIT_SHIFT: Final = 42
"""A key is the unit, the number of its operation, and what comes first of those with one number."""


class Rows(NamedTuple):
    """All rows of a run.

    Attributes:
        transfers: tables of short or of long rows, in any order.
        operations: [operations, columns of operations].
    """

    transfers: list[Counters]
    operations: Counters

    def counts(self, channels: int) -> Counters:
        """Return how many transfers there were on each channel."""
        found = np.zeros(channels, np.int64)
        for table in self.transfers:
            found += np.bincount(table[:, 0], minlength=channels)
        return found


class _Part(NamedTuple):
    """Events in any order, one array a column.

    Attributes:
        key: see above.
        code: channel and kind.
        cycle: the unit's clock after it.
        spent: cycles of those since the event before that were not work.
    """

    key: Counters
    code: Counters
    cycle: Counters
    spent: Counters


class _More(NamedTuple):
    """What of some events is to be known besides.

    Attributes:
        key: whose.
        amount: see ``events``.
        since: of requests, the key of the reading that they count from; else -1.
    """

    key: Counters
    amount: Counters
    since: Counters


def events_of(rows: Rows, producers: Counters, consumers: Counters, forward: Counters) -> Events:
    """Return what units that were tasks did; ``rows`` has no transfers afterwards.

    Args:
        rows: of the run.
        producers: by channel, the unit that sends.
        consumers: by channel, the unit that receives.
        forward: by channel, cycles from the sending of an element until it is visible.
    """
    parts, more = _of_operations(rows.operations, forward)
    while rows.transfers:
        parts += _of_transfers(rows.transfers.pop(), producers, consumers)
    key, code, cycle, spent = _sorted(parts)
    amount, since = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
    places = np.searchsorted(key, more.key)
    amount[places] = more.amount
    late = more.since >= 0
    since[places[late]] = np.searchsorted(key, more.since[late])
    # The clock at a request is that before the wait for a slot, of which the next event tells.
    asked = np.flatnonzero(np.isin(code & e.KIND, (e.LATE, e.AT)))
    cycle[asked] = cycle[asked + 1] - spent[asked + 1]
    unit = key >> _UNIT_SHIFT
    work = np.diff(cycle, prepend=0)
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    work[begins] = cycle[begins]
    work -= spent
    return Events(unit, code, work, amount, since)


def _key(unit: Counters, order: Counters, rank: int) -> Counters:
    return unit << _UNIT_SHIFT | order << 1 | rank


def _sorted(parts: list[_Part]) -> _Part:
    """Return all parts as one in the order of keys; the list is empty afterwards."""
    columns = [[part[number] for part in parts] for number in range(len(_Part._fields))]
    parts.clear()
    key = np.concatenate(columns[0])
    columns[0].clear()
    # What one unit did is in order, but for a few: that is quick to sort.
    sequence = np.argsort(key, kind="stable")
    found = [key[sequence]]
    del key
    for column in columns[1:]:
        whole = np.concatenate(column)
        column.clear()
        found.append(whole[sequence])
    return _Part(*found)


def _of_transfers(table: Counters, producers: Counters, consumers: Counters) -> list[_Part]:
    """Return reserving, sending, seeing and taking."""
    is_short = table.shape[1] == len(r.SHORT_COLUMNS)
    names = r.SHORT_COLUMNS if is_short else r.LONG_COLUMNS
    column = {name: np.ascontiguousarray(its) for name, its in zip(names, table.T, strict=True)}
    channel = column["channel"]
    sender, receiver = producers[channel], consumers[channel]

    def part(
        kind: int, which: NDArray[np.bool_], unit: Counters, what: str, wait: str = ""
    ) -> _Part:
        cycle = column[f"{what}_cycle"][which]
        return _Part(
            _key(unit[which], column[f"{what}_order"][which], 1),
            channel[which] << e.SHIFT | kind,
            cycle,
            column[wait][which] if wait else np.zeros(len(cycle), np.int64),
        )

    sent, taken = column["sent_order"] >= 0, column["taken_order"] >= 0
    if is_short:
        return [
            part(e.SEND, sent, sender, "sent", "send_wait_cycles"),
            part(e.TAKE, taken, receiver, "taken", "receive_wait_cycles"),
        ]
    at_once = column["reserved_order"] == column["sent_order"]
    takes_at_once = column["seen_order"] == column["taken_order"]
    hears = taken & takes_at_once & (column["taken_cycle"] < column["seen_cycle"])
    seen = (column["seen_order"] >= 0) & ~takes_at_once
    return [
        part(e.SEND, sent & at_once, sender, "sent", "send_wait_cycles"),
        part(e.RESERVE, sent & ~at_once, sender, "reserved", "send_wait_cycles"),
        part(e.PUT, sent & ~at_once, sender, "sent"),
        part(e.HEAR, hears, receiver, "seen"),
        part(e.TAKE, taken & takes_at_once & ~hears, receiver, "taken", "receive_wait_cycles"),
        part(e.SEE, seen, receiver, "seen", "receive_wait_cycles"),
        part(e.TAKE, taken & ~takes_at_once, receiver, "taken"),
    ]


def _of_operations(table: Counters, forward: Counters) -> tuple[list[_Part], _More]:
    """Return everything else."""
    column = dict(zip(r.OPERATION_COLUMNS, table.T, strict=True))
    operation, unit, order, cycle, wait, channel, amount = (
        column[name] for name in r.OPERATION_COLUMNS
    )
    parts: list[_Part] = []
    more: list[_More] = []
    nothing = np.zeros(len(table), np.int64)

    def add(
        kind: int,
        its: NDArray[np.bool_] | Counters,
        amounts: Counters,
        *,
        spent: Counters = wait,
        numbers: Counters = order,
        since: Counters | None = None,
        rank: int = 1,
    ) -> None:
        keys = _key(unit[its], numbers[its], rank)
        # What is not about a channel stands for none.
        on = np.zeros(len(keys), np.int64) if rank == 0 else np.maximum(channel[its], 0)
        code = on << e.SHIFT | kind
        parts.append(_Part(keys, code, cycle[its], spent[its]))
        counted = np.full(len(keys), -1) if since is None else since[its]
        more.append(_More(keys, amounts[its], counted))

    add(e.WAIT, operation == r.BURST, wait)
    add(e.WAIT, operation == r.ALLOCATE, wait)
    add(e.END, operation == r.END, nothing)
    add(e.RESERVE, operation == r.RESERVE, nothing)
    add(e.FINISH, operation == r.FINISH, nothing)
    add(e.ARRIVAL, operation == r.ARRIVAL, amount, spent=nothing)
    add(e.UNTIL, operation == r.UNTIL, amount)
    # The amount is when the element set out that was waited for.
    add(e.IDLE, operation == r.IDLE, cycle - amount - forward[np.maximum(channel, 0)])
    is_late = operation == r.LATE
    read = is_late & (wait >= 0)
    readings = np.where(read, _key(unit, np.maximum(wait, 0), 0), -1)
    add(e.LATE, read, amount, spent=nothing, since=readings, rank=0)
    add(e.AT, is_late & ~read, amount, spent=nothing, rank=0)
    _, once = np.unique(wait[read], return_index=True)
    add(e.NOTE, np.flatnonzero(read)[once], nothing, spent=nothing, numbers=wait, rank=0)
    return parts, _More(*map(np.concatenate, zip(*more, strict=True)))

"""Derives the cycles of compiled operators and their channels from a log.

Rows of tasks have stamps. Rows of channels with one compiled end lack the events of that end, and
channels with two such ends have no rows. Timing the log by the rule of channels yields them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.timing.compiled import world as c
from fabric.timing.log import log_rows as r
from fabric.timing.retiming import events as e
from fabric.timing.retiming.log_tables import log_in
from fabric.timing.retiming.record_making import About, Rows, record_of
from fabric.timing.retiming.retimer import Retimer
from fabric.timing.retiming.unrolling import Log, Unrolled

if TYPE_CHECKING:
    from fabric.timing.engine.tables import Counters
    from fabric.timing.retiming.log_tables import Table
    from fabric.timing.retiming.record import Record

_NUMBER: Final = {name: place for place, name in enumerate(r.LONG_COLUMNS)}
_SENT: Final = np.array([
    _NUMBER[name] for name in (
        "stop", "sent_order", "sent_cycle", "send_wait_cycles", "requested_cycle",
        "reserved_order", "reserved_cycle",
    )
])  # fmt: skip
_TAKEN: Final = np.array([
    _NUMBER[name] for name in (
        "taken_order", "taken_cycle", "receive_wait_cycles", "seen_order", "seen_cycle"
    )
])  # fmt: skip
"""Columns of both ends."""

_OPERATION, _UNIT, _ORDER, _CYCLE, _WAIT, _CHANNEL, _AMOUNT = range(len(r.OPERATION_COLUMNS))


class Moment(NamedTuple):
    """Progress of a run.

    Attributes:
        cycles: by unit.
        next_order: events with this number or a later one came afterwards.
        is_end: the run was over.
    """

    cycles: Counters
    next_order: int
    is_end: bool


class Logged(NamedTuple):
    """A run that was partly written by the compiled loop.

    Attributes:
        transfers: long rows of all units.
        next_order: all events have lower numbers.
        given: transfers and operations of tasks.
    """

    transfers: Counters
    operations: Counters
    next_order: int
    given: Rows
    log: Log

    def record(self, about: About) -> Record:
        """Return the record of the run, which has completed."""
        unrolled = Unrolled(self.log, len(about.channels))
        return record_of(self.given._replace(transfers=list(self.given.transfers)), about, unrolled)


def logged(
    tables: Mapping[str, Table],
    transfers: Counters,
    operations: Counters,
    about: About,
    moment: Moment,
) -> Logged:
    """Return all rows of a run.

    ``transfers`` and ``operations`` are rows of tasks, in which compiled operations are ELSEWHERE.

    Raises:
        ValueError: the tables do not fit together, or do not describe a run.
    """
    units = len(about.units)
    if len(moment.cycles) != units:
        raise ValueError("there are other units")
    is_compiled = np.zeros(units, np.bool_)
    is_compiled[_units_in(tables, units)] = True
    transfers, operations = _of_moment(transfers, operations, moment, is_compiled)
    bursts = np.bincount(operations[operations[:, _OPERATION] == r.BURST, _UNIT], minlength=units)
    log = log_in(tables, bursts, len(about.channels))
    # The waits of tasks for elements that they had not looked at keep their recorded length.
    timed = operations.copy()
    timed[timed[:, _OPERATION] == r.IDLE, _OPERATION] = r.ALLOCATE
    unrolled = Unrolled(log, len(about.channels))
    record = record_of(Rows([transfers], timed), about, unrolled)
    _check(record)
    retimer = Retimer(record)
    if retimer.time(record.depths).blocked:
        raise ValueError("what it says does not go on")
    found = _Found(retimer, log, unrolled)
    found.check(moment)
    rows = np.concatenate([_of_tasks(operations, found), found.operations(is_end=moment.is_end)])
    return Logged(
        _transfers(transfers, found),
        rows[rows[:, _OPERATION] < len(r.NUMBERED)],
        max(moment.next_order, len(record.events)),
        Rows([transfers], operations),
        log,
    )


def _units_in(tables: Mapping[str, Table], units: int) -> Counters:
    unit: Counters = tables["ports"]["unit"]
    if len(unit) and not 0 <= unit.min() <= unit.max() < units:
        raise ValueError("a number in it is none of a run")
    return unit


def _of_moment(
    transfers: Counters, operations: Counters, moment: Moment, is_compiled: NDArray[np.bool_]
) -> tuple[Counters, Counters]:
    """Return the rows of tasks up to a moment."""
    transfers = transfers[transfers[:, _NUMBER["sent_order"]] < moment.next_order]
    for name in ("seen", "taken"):
        later = transfers[:, _NUMBER[f"{name}_order"]] >= moment.next_order
        transfers[later, _NUMBER[f"{name}_order"]] = -1
        transfers[later, _NUMBER[f"{name}_cycle"]] = -1
        if name == "seen":
            transfers[later, _NUMBER["receive_wait_cycles"]] = 0
    later = operations[:, _ORDER] >= moment.next_order
    # A burst has the number of its submission, and may be answered after the moment.
    its = operations[:, _UNIT]
    later |= is_compiled[its] & (operations[:, _CYCLE] > moment.cycles[its])
    return transfers, operations[~later]


def _check(record: Record) -> None:
    code, amount = record.events.T
    kinds, about = code & e.KIND, code >> e.SHIFT
    arrives = kinds == e.ARRIVAL
    late = np.flatnonzero(kinds == e.LATE)
    unused = np.array([channel.unused for channel in record.channels], np.int64)
    if (
        (unused < 0).any()
        or (amount[arrives] < 0).any()
        or (amount[arrives] >= record.elements[about[arrives]]).any()
        or (about[late] <= 0).any()
        or (late - about[late] < record.first[record.unit_of[late]]).any()
    ):
        raise ValueError("what it says is none of a run")


class _Found:
    def __init__(self, retimer: Retimer, log: Log, unrolled: Unrolled) -> None:
        self.record = record = retimer.record
        self.clocks = clocks = retimer.clocks[: len(record.events)]
        self.usable = retimer.usable
        code, self.amount = record.events.T
        self.kind, self.channel = code & e.KIND, code >> e.SHIFT
        before = np.append(0, clocks[:-1])[: len(clocks)]
        its = record.first[:-1][np.diff(record.first) > 0]
        before[its] = 0
        self.waited = clocks - before - np.where(self.kind <= e.LAST_WORKED, self.amount, 0)
        self.is_compiled = np.zeros(len(record.units), np.bool_)
        self.is_compiled[log.units] = True
        self.unit = record.unit_of
        self.producer = np.array([each.producer for each in record.channels], np.int64)
        self.consumer = np.array([each.consumer for each in record.channels], np.int64)
        self.codes = _by_channel(unrolled.codes)

    def check(self, moment: Moment) -> None:
        """Refuse a log with other final clocks of compiled units than ``moment``."""
        first, cycles = self.record.first, np.zeros(len(self.record.units), np.int64)
        some = np.diff(first) > 0
        cycles[some] = self.clocks[first[1:][some] - 1]
        if (cycles != moment.cycles)[self.is_compiled].any():
            raise ValueError("its units are not where the run's were")

    def operations(self, *, is_end: bool) -> Counters:
        ended = np.flatnonzero((self.kind == e.END) & self.is_compiled[self.unit])
        rows = [self._rows(r.END, ended)]
        if is_end:
            reserved, element = self.ordered(e.RESERVE, e.SEND)
            unused = element >= self.record.elements[self.channel[reserved]]
            rows.append(self._rows(r.RESERVE, reserved[unused & self._compiled(reserved)]))
        return np.concatenate(rows)

    def _compiled(self, events: Counters) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.is_compiled[self.unit[events]]
        return found

    def _rows(self, operation: int, its: Counters) -> Counters:
        same, none = np.full(len(its), operation), np.zeros(len(its), np.int64)
        columns = (same, self.unit[its], its, self.clocks[its], self.waited[its])
        return np.column_stack([*columns, self.channel[its], none])

    def ordered(self, *kinds: int) -> tuple[Counters, Counters]:
        its = np.flatnonzero(np.isin(self.kind, kinds))
        its = its[np.argsort(self.channel[its], kind="stable")]
        channel = self.channel[its]
        return its, np.arange(len(its)) - np.searchsorted(channel, channel)

    def places(self, *kinds: int) -> Counters:
        """Return the event of one of ``kinds`` on each slot; -1 without such an event."""
        found = np.full(int(self.record.base[-1]) + 1, -1)
        its, element = self.ordered(*kinds)
        channel = self.channel[its]
        there = element < np.diff(self.record.base)[channel]
        found[(self.record.base[channel] + element)[there]] = its[there]
        return found


def _by_channel(codes: list[tuple[Counters, Counters]]) -> Counters:
    if not codes:
        return np.zeros(0, np.int64)
    channel, code = (np.concatenate(each) for each in zip(*codes, strict=True))
    return code[np.argsort(channel, kind="stable")]


def _of_tasks(operations: Counters, found: _Found) -> Counters:
    """Return rows of operations; bursts of compiled units are inserted among them."""
    operations = operations[np.lexsort((operations[:, _ORDER], operations[:, _UNIT]))]
    its = found.is_compiled[operations[:, _UNIT]]
    waits = np.flatnonzero((found.kind == e.WAIT) & found.is_compiled[found.unit])
    operations[its, _ORDER] = waits
    return operations


def _transfers(transfers: Counters, found: _Found) -> Counters:
    """Return rows of all transfers; rows between two tasks are unchanged."""
    sends, takes = found.is_compiled[found.producer], found.is_compiled[found.consumer]
    of_both = ~(sends | takes)[transfers[:, 0]]
    known = transfers[~of_both]
    rows = _whole(found, np.flatnonzero(sends | takes))
    if found.codes.size:
        its = sends[rows[:, 0]]
        rows[its, _NUMBER["stop"]] = _stops(found.codes)
    base = found.record.base
    slot = np.full(int(base[-1]) + 1, -1)
    slot[base[rows[:, 0]] + rows[:, 1]] = np.arange(len(rows))
    if (known[:, 1] >= found.record.elements[known[:, 0]]).any():
        raise ValueError("rows of it are missing")
    place = slot[base[known[:, 0]] + known[:, 1]]
    by_task = np.flatnonzero(~takes[rows[:, 0]])
    rows[np.ix_(by_task, _TAKEN)] = (-1, -1, 0, -1, -1)
    taken_by_task = np.flatnonzero(~takes[known[:, 0]])
    sent_by_task = np.flatnonzero(~sends[known[:, 0]])
    rows[np.ix_(place[taken_by_task], _TAKEN)] = known[np.ix_(taken_by_task, _TAKEN)]
    rows[np.ix_(place[sent_by_task], _SENT)] = known[np.ix_(sent_by_task, _SENT)]
    return np.concatenate([transfers[of_both], rows])


def _stops(codes: Counters) -> Counters:
    level = codes & (c.BARE - 1)
    return np.where(codes & c.BARE, ~level, level)


def _whole(found: _Found, channels: Counters) -> Counters:
    record, clocks, waited = found.record, found.clocks, found.waited
    counts = record.elements[channels]
    channel = np.repeat(channels, counts)
    element = np.arange(len(channel)) - np.repeat(np.cumsum(counts) - counts, counts)
    slot = record.base[channel] + element
    sent, reserved = found.places(e.SEND, e.PUT)[slot], found.places(e.SEND, e.RESERVE)[slot]
    taken, seen = found.places(e.TAKE)[slot], _first_looks(found)[slot]
    if (sent < 0).any() or (reserved < 0).any():
        raise ValueError("rows of it are missing")
    asked = found.kind[sent - 1]
    ago = np.where(asked == e.LATE, found.channel[sent - 1], 0)
    since = np.where(asked == e.LATE, clocks[sent - 1 - ago], 0)
    is_asked = (asked == e.LATE) | (asked == e.AT)
    requested = np.where(is_asked, since + found.amount[sent - 1], -1)
    is_taken, is_seen = taken >= 0, seen >= 0
    seen = np.where(is_seen, seen, taken)
    has_ended = np.zeros(len(record.units), np.bool_)
    has_ended[found.unit[found.kind == e.FINISH]] = True
    left = ~is_taken & has_ended[found.consumer[channel]]
    backward = np.array([each.backward_cycles for each in record.channels], np.int64)[channel]
    dropped = found.usable[slot] - backward

    def either(there: Counters, value: Counters, of_left: Counters | int) -> Counters:
        return np.where(there, value, np.where(left, of_left, -1))

    table = {
        "channel": channel,
        "element": element,
        "stop": np.zeros(len(channel), np.int64),
        "taken_order": either(is_taken, taken, r.LEFT_OVER),
        "taken_cycle": either(is_taken, clocks[taken], dropped),
        "receive_wait_cycles": np.where(is_seen | is_taken, waited[seen], 0),
        "sent_order": sent,
        "sent_cycle": clocks[sent],
        "send_wait_cycles": waited[reserved],
        "requested_cycle": requested,
        "reserved_order": reserved,
        "reserved_cycle": clocks[reserved],
        "seen_order": either(is_seen | is_taken, seen, r.LEFT_OVER),
        "seen_cycle": either(is_seen | is_taken, clocks[seen], dropped),
    }
    return np.column_stack([table[name] for name in r.LONG_COLUMNS])


def _first_looks(found: _Found) -> Counters:
    """Return, by slot, the event that peeked its element; -1 if none."""
    record = found.record
    looks = np.full(int(record.base[-1]) + 1, -1)
    its = np.flatnonzero(found.kind == e.SEE)
    element = record.element_of[its]
    channel = found.channel[its]
    there = element < record.elements[channel]
    # Reversed, so that the first look at an element is written last and stays.
    places = (record.base[channel] + element)[there][::-1]
    looks[places] = its[there][::-1]
    return looks

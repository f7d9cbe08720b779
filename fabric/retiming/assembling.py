"""From parts, each in the order of its units, to the events of a record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fabric.retiming import events as e

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters

__all__ = ["Events", "assembled"]


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

"""What each transition of a compiled operator does, as events: the same whenever it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.compiled import columns as c
from fabric.retiming import events as e

if TYPE_CHECKING:
    from fabric.compiled.tables import Tables
    from fabric.engine.machine_code import Counters

__all__ = [
    "NOTHING",
    "OUTPUT_KINDS",
    "Templates",
    "ranges",
    "readings_of",
    "templates_in",
    "templates_of",
]

NOTHING: Final = -1
"""Kind of a row that is no event: work at the end of a transition, which the next event gets."""

OUTPUT_KINDS: Final = (e.SEND, e.RESERVE, e.PUT)

_KIND_OF: Final = {
    c.TAKE: e.TAKE,
    c.SEND: e.SEND,
    c.SEND_AT: e.SEND,
    c.RESERVE: e.RESERVE,
    c.PUT: e.PUT,
    c.UNTIL: e.UNTIL,
    c.BURST: e.WAIT,
    c.NOTE: e.NOTE,
}

_MOVES: Final = (c.CHARGE, c.UNTIL, c.RESERVE, c.BURST, c.SEND, c.SEND_AT, c.PUT)
"""After these, a clock that was read before may no longer be what it was."""

_HEAD, _NOTE, _LATE, _OWN, _RANKS = range(5)


class Templates(NamedTuple):
    """Rows of all of them, one after the other; those of template t begin at ``first[t]``.

    Attributes:
        first: see above; and where the last one ends.
        kind: of the event, or NOTHING.
        port: of the unit's inputs or outputs, where the event is on a channel.
        amount: as the event has it, where it is no work.
        work: cycles since the row before.
        code: of the element that is sent; see ``codes``.
        stamp: of a reading, where it is kept; of a request, where the one it counts from is.
        stays: an element is looked at that the template does not take.
        reaches: by template, whether a request counts from a reading in an earlier one.
    """

    first: Counters
    kind: Counters
    port: Counters
    amount: Counters
    work: Counters
    code: Counters
    stamp: Counters
    stays: NDArray[np.bool_]
    reaches: NDArray[np.bool_]


def templates_of(
    tables: Tables, stretches: Sequence[tuple[int, int]], inputs: int, used: NDArray[np.bool_]
) -> Templates:
    """Return templates: of transitions, of stretches before the first element, and of ends.

    Args:
        tables: of the transitions.
        stretches: operations that are done before the first element.
        inputs: the most that an operator has; for 0 to so many there is an end each.
        used: whether each of them is needed; the others have no rows.
    """
    transitions = tables.transitions.array[: tables.transitions.count]
    bounds = np.concatenate([transitions[:, [c.START, c.STOP]], np.array(stretches, np.int64)])
    counts = np.where(used[: len(bounds)], bounds[:, 1] - bounds[:, 0], 0)
    operations = tables.operations.array
    rows, owner = ranges(bounds[:, 0], counts), np.repeat(np.arange(len(bounds)), counts)
    rows, owner = _repeated(rows, owner, operations)
    parts = [
        *_of_operations(rows, owner, operations),
        _heads(tables, rows, owner, used),
        *_ends(len(bounds), inputs),
    ]
    # What stands at one place has its rank; the heads of empty ones stand before the next.
    column = [np.concatenate(each) for each in zip(*parts, strict=True)]
    ordered = np.lexsort((column[1], column[0]))
    owner, _, *columns = (each[ordered] for each in column)
    return _squeezed(len(used), owner, *columns)


def ranges(first: Counters, counts: Counters) -> Counters:
    """Return ``counts`` integers from each of ``first`` on, one after the other."""
    ends = np.cumsum(counts)
    found = np.repeat(first - (ends - counts), counts)
    found += np.arange(len(found), dtype=found.dtype)
    return found


def _repeated(rows: Counters, owner: Counters, operations: Counters) -> tuple[Counters, Counters]:
    """Return operations with those that are done several times as often as they are done."""
    repeats = np.flatnonzero(operations[rows, c.WHAT] == c.REPEAT)
    if not len(repeats):
        return rows, owner
    pieces, done = [], 0
    for at in repeats.tolist():
        body, times = operations[rows[at], [c.AT, c.AMOUNT]].tolist()
        pieces += [np.arange(done, at), np.tile(np.arange(at - body, at), times - 1)]
        done = at + 1
    places = np.concatenate([*pieces, np.arange(done, len(rows))])
    return rows[places], owner[places]


_Rows = tuple["Counters", ...]
"""Owner, place among its rows, kind, port, amount, work, code, stamp."""


def _of_operations(rows: Counters, owner: Counters, operations: Counters) -> list[_Rows]:
    """Return the events of operations, and what requests need before them."""
    what = operations[rows, c.WHAT]
    kinds = np.full(c.REPEAT + 1, NOTHING)
    kinds[list(_KIND_OF)] = list(_KIND_OF.values())
    at, zero = np.arange(len(rows)), np.zeros(len(rows), np.int64)
    amount = operations[rows, c.AMOUNT]
    port = operations[rows, c.AT]
    work = np.where(what == c.CHARGE, amount, 0)
    event = np.where((what == c.UNTIL), amount, 0)
    code, stamp = operations[rows, c.SENDS], operations[rows, c.STAMP]
    own = owner, at * _RANKS + _OWN, kinds[what], port, event, work, code, stamp
    late = what == c.SEND_AT
    # A clock that is read and asked for at once is not kept.
    read = _latest(what == c.NOTE)
    begin = np.searchsorted(owner, owner)
    moved = np.concatenate([[-1], _latest(np.isin(what, _MOVES))[:-1]])[: len(rows)]
    fresh = late & (stamp < 0)
    unread = fresh & (read <= np.maximum(moved, begin - 1))
    stamp = np.where(fresh, stamp[read], stamp)
    stamp[unread] = c.STAMPS

    def before(its: Counters, rank: int, kind: int, amount: Counters) -> _Rows:
        none = zero[its]
        kinds = np.full(len(none), kind)
        return owner[its], at[its] * _RANKS + rank, kinds, none, amount[its], none, none, stamp[its]

    return [own, before(late, _LATE, e.LATE, amount), before(unread, _NOTE, e.NOTE, zero)]


def _latest(which: NDArray[np.bool_]) -> Counters:
    """Return, by place, the last place up to it that is one of ``which``; -1 where none is."""
    latest: Counters = np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))
    return latest


def _heads(tables: Tables, rows: Counters, owner: Counters, used: NDArray[np.bool_]) -> _Rows:
    """Return what transitions begin with: a look at an element, at an end, or an arrival."""
    known = tables.known[tables.known[:, 0] != 0]
    known = known[used[known[:, 2]]]
    follower, code, transition = known.T
    state = tables.states.array[follower - 1]
    port = state[:, c.PORT]
    operations = tables.operations.array
    start = np.searchsorted(owner, transition)
    there = start < np.searchsorted(owner, transition, "right")
    first = operations[rows[np.where(there, start, 0)]] if len(rows) else np.zeros((len(known), 6))
    at_once = there & (first[:, c.WHAT] == c.TAKE) & (first[:, c.AMOUNT] == c.AT_ONCE)
    kind = np.where(at_once, NOTHING, e.SEE)
    kind = np.where(code == c.ENDED_CODE, e.END, kind)
    popped = state[:, c.KIND] == c.POP
    kind = np.where(popped, e.ARRIVAL, kind)
    none = np.zeros(len(known), np.int64)
    place = np.full(len(known), -1)
    return transition, place, kind, np.where(popped, code, port), none, none, none, none


def _ends(first: int, inputs: int) -> list[_Rows]:
    """Return what operators do last: they finish, and see the ends of their inputs."""
    counts = np.arange(inputs + 1) + 1
    owner = np.repeat(first + np.arange(inputs + 1), counts)
    place = ranges(np.zeros(inputs + 1, np.int64), counts)
    none = np.zeros(len(owner), np.int64)
    return [(owner, place, np.where(place, e.END, e.FINISH), place - 1, none, none, none, none)]


def _squeezed(count: int, owner: Counters, *columns: Counters) -> Templates:
    """Let events have the work of rows before them that are none."""
    kind, port, amount, work, code, stamp = columns
    is_last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    total = np.cumsum(work)
    kept = np.flatnonzero((kind != NOTHING) | is_last)
    work = np.diff(total[kept], prepend=0)
    some = (kind[kept] != NOTHING) | (work > 0)
    kept, work = kept[some], work[some]
    rest = (each[kept] for each in (code, stamp))
    return templates_in(count, owner[kept], kind[kept], port[kept], amount[kept], work, *rest)


def templates_in(
    count: int,
    owner: Counters,
    kind: Counters,
    port: Counters,
    amount: Counters,
    work: Counters,
    code: Counters,
    stamp: Counters,
) -> Templates:
    """Return ``count`` templates of these rows, which are in the order of their owners."""
    first = np.searchsorted(owner, np.arange(count + 1))
    reaches = np.zeros(count, np.bool_)
    late = kind == e.LATE
    reaches[owner[late & (readings_of(owner, kind, stamp) < 0)]] = True
    stays = _stays(owner, kind, port)
    return Templates(first, kind, port, amount, work, code, stamp, stays, reaches)


def readings_of(owner: Counters, kind: Counters, stamp: Counters) -> Counters:
    """Return, by row, the last reading that its owner has kept where it says; -1 where none."""
    rows = np.flatnonzero((kind == e.NOTE) | (kind == e.LATE))
    keys = owner[rows] * (c.STAMPS + 1) + stamp[rows]
    ordered = np.argsort(keys, kind="stable")
    is_reading = kind[rows[ordered]] == e.NOTE
    last = _latest(is_reading)
    its = keys[ordered]
    there = (last >= 0) & (its[last] == its)
    found = np.full(len(kind), -1)
    found[rows[ordered]] = np.where(there, rows[ordered[last]], -1)
    return found


def _stays(owner: Counters, kind: Counters, port: Counters) -> NDArray[np.bool_]:
    """Return which looks at an element are not followed by its dequeue in the same template."""
    looks = np.flatnonzero((kind == e.SEE) | (kind == e.TAKE))
    looks = looks[np.lexsort((looks, port[looks], owner[looks]))]
    places = owner[looks], port[looks]
    taken = kind[looks[1:]] == e.TAKE
    for each in places:
        taken &= each[1:] == each[:-1]
    stays = np.zeros(len(kind), np.bool_)
    stays[looks] = (kind[looks] == e.SEE) & ~np.append(taken, False)[: len(looks)]
    return stays

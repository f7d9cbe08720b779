"""Unrolls the journal of compiled operators into events.

A transition has the same events whenever it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.graph.values.value import size_bytes
from fabric.timing.compiled import world as c
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Events

if TYPE_CHECKING:
    from fabric.timing.compiled.arrays import Journal, Stage
    from fabric.timing.compiled.automaton import Tables
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.tables import Counters

NOTHING: Final = -1
"""Kind of a row without an event: its work is added to the next event."""

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
"""Events that may move the clock."""

_HEAD, _NOTE, _LATE, _OWN, _RANKS = range(5)


class Templates(NamedTuple):
    """Rows of all templates; template t begins at ``first[t]``.

    Attributes:
        kind: of the event, or NOTHING.
        port: of the unit's inputs or outputs, for events on a channel.
        work: cycles since the previous row.
        code: of a sent element; see ``codes``.
        stamp: where a reading is kept; of a request, where its reading is.
        stays: the template peeks at an element and does not take it.
        reaches: by template, whether a request counts from an earlier template's reading.
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
    """Return the templates of transitions, first stretches and ends.

    There is an end for 0 to ``inputs`` inputs. Templates that are not ``used`` have no rows.
    """
    transitions = tables.transitions.table.rows[: tables.transitions.count]
    begin, end = np.array(stretches, np.int64).reshape(-1, 2).T
    first = np.concatenate([transitions["start"], begin])
    counts = np.concatenate([transitions["stop"], end]) - first
    counts = np.where(used[: len(counts)], counts, 0)
    operations = tables.operations.table.rows
    rows, owner = ranges(first, counts), np.repeat(np.arange(len(counts)), counts)
    rows, owner = _repeated(rows, owner, operations)
    parts = [
        *_of_operations(rows, owner, operations),
        _heads(tables, rows, owner, used),
        *_ends(len(counts), inputs),
    ]
    # Rows are sorted by owner, then by place and rank. Heads have place -1.
    column = [np.concatenate(each) for each in zip(*parts, strict=True)]
    ordered = np.lexsort((column[1], column[0]))
    owner, _, *columns = (each[ordered] for each in column)
    return _squeezed(len(used), owner, *columns)


def ranges(first: Counters, counts: Counters) -> Counters:
    """Return ``counts`` consecutive integers from each of ``first`` on, concatenated."""
    ends = np.cumsum(counts)
    found = np.repeat(first - (ends - counts), counts)
    found += np.arange(len(found), dtype=found.dtype)
    return found


def _repeated(rows: Counters, owner: Counters, operations: _Named) -> tuple[Counters, Counters]:
    repeats = np.flatnonzero(operations["what"][rows] == c.REPEAT)
    if not len(repeats):
        return rows, owner
    pieces, done = [], 0
    for at in repeats.tolist():
        body, times = operations[rows[at]][["port", "amount"]].tolist()
        pieces += [np.arange(done, at), np.tile(np.arange(at - body, at), times - 1)]
        done = at + 1
    places = np.concatenate([*pieces, np.arange(done, len(rows))])
    return rows[places], owner[places]


_Named: TypeAlias = "NDArray[Any]"
"""Rows with named columns."""

_Rows = tuple["Counters", ...]
"""Owner, place among its rows, kind, port, amount, work, code, stamp."""


def _of_operations(rows: Counters, owner: Counters, operations: _Named) -> list[_Rows]:
    what = operations["what"][rows]
    kinds = np.full(c.REPEAT + 1, NOTHING)
    kinds[list(_KIND_OF)] = list(_KIND_OF.values())
    at, zero = np.arange(len(rows)), np.zeros(len(rows), np.int64)
    amount, port = operations["amount"][rows], operations["port"][rows]
    work = np.where(what == c.CHARGE, amount, 0)
    event = np.where((what == c.UNTIL), amount, 0)
    code, stamp = operations["sends"][rows], operations["stamp"][rows]
    own = owner, at * _RANKS + _OWN, kinds[what], port, event, work, code, stamp
    late = what == c.SEND_AT
    # A clock reading that is used immediately has no NOTE in the recording.
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
    """Return, by row, the last row up to it with ``which`` set; -1 if none."""
    latest: Counters = np.maximum.accumulate(np.where(which, np.arange(len(which)), -1))
    return latest


def _heads(tables: Tables, rows: Counters, owner: Counters, used: NDArray[np.bool_]) -> _Rows:
    """Return the heads of transitions: a look at an element, a look at an end, or an arrival."""
    known = tables.known.rows[tables.known.rows["follower"] != 0]
    known = known[used[known["transition"]]]
    code, transition = known["code"], known["transition"]
    state = tables.states.table.rows[known["follower"] - 1]
    port = state["port"]
    operations = tables.operations.table.rows
    start = np.searchsorted(owner, transition)
    there = start < np.searchsorted(owner, transition, "right")
    first = operations[rows[np.where(there, start, 0)] if len(rows) else np.zeros_like(start)]
    at_once = there & (first["what"] == c.TAKE) & (first["amount"] == c.AT_ONCE)
    kind = np.where(at_once, NOTHING, e.SEE)
    kind = np.where(code == c.ENDED_CODE, e.END, kind)
    popped = state["kind"] == c.POP
    kind = np.where(popped, e.ARRIVAL, kind)
    none = np.zeros(len(known), np.int64)
    place = np.full(len(known), -1)
    return transition, place, kind, np.where(popped, code, port), none, none, none, none


def _ends(first: int, inputs: int) -> list[_Rows]:
    counts = np.arange(inputs + 1) + 1
    owner = np.repeat(first + np.arange(inputs + 1), counts)
    place = ranges(np.zeros(inputs + 1, np.int64), counts)
    none = np.zeros(len(owner), np.int64)
    return [(owner, place, np.where(place, e.END, e.FINISH), place - 1, none, none, none, none)]


def _squeezed(count: int, owner: Counters, *columns: Counters) -> Templates:
    """Add the work of rows without events to the next event."""
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
    """Return ``count`` templates, made of rows in the order of their owners."""
    first = np.searchsorted(owner, np.arange(count + 1))
    reaches = np.zeros(count, np.bool_)
    late = kind == e.LATE
    reaches[owner[late & (readings_of(owner, kind, stamp) < 0)]] = True
    stays = _stays(owner, kind, port)
    return Templates(first, kind, port, amount, work, code, stamp, stays, reaches)


def readings_of(owner: Counters, kind: Counters, stamp: Counters) -> Counters:
    """Return, by row, the last reading that its owner kept in its stamp; -1 if none."""
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


_BATCH: Final = 1 << 18
"""Rows that are unrolled at a time."""


_KINDS: Final = np.arange(e.KIND + 1)

_IS_OUTPUT: Final = np.isin(_KINDS, OUTPUT_KINDS)

_IS_ON_CHANNEL: Final = _IS_OUTPUT | np.isin(_KINDS, (e.SEE, e.TAKE, e.END, e.ARRIVAL))


class Log(NamedTuple):
    """Templates of compiled operators, each in its order.

    Attributes:
        sides: by operator, where its inputs begin in ``channels``, then its outputs.
        channels: by port; -1 for unread outputs and at the end.
        ends: by operator, where its templates end in ``taken``.
        taken: templates of all operators, concatenated.
        chose: units with work that depends on which input came first.
    """

    units: Counters
    sides: Counters
    channels: Counters
    ends: Counters
    taken: Counters
    templates: Templates
    chose: Counters


def log_of(journal: Journal, number: Mapping[Channel, int]) -> Log:
    """Return the log of a completed run's ``journal``."""
    stages = journal.stages
    units = np.array([stage.unit.index for stage in stages], np.int64)
    inputs = np.array([len(stage.inputs) for stage in stages], np.int64)
    ends, taken = _sequence(journal, inputs)
    count = journal.tables.transitions.count + len(stages) + int(inputs.max()) + 1
    used = np.bincount(taken, minlength=count) > 0
    stretches = [stage.automaton.first_stretch for stage in stages]
    templates = templates_of(journal.tables, stretches, int(inputs.max()), used)
    return Log(units, *ports_of(stages, number), ends, taken, templates, units[journal.chose])


def ports_of(stages: Sequence[Stage], number: Mapping[Channel, int]) -> tuple[Counters, Counters]:
    """Return ``sides`` and ``channels`` of a ``Log``."""
    ports: list[int] = []
    sides: list[int] = []
    for stage in stages:
        sides.append(len(ports))
        ports += [number[each] for each in stage.inputs]
        sides.append(len(ports))
        ports += [-1 if each is None else number[each] for each in stage.outputs]
    return np.array(sides, np.int64), np.array([*ports, -1], np.int64)


class Unrolled:
    """Events of compiled operators in one run.

    Attributes:
        chose: units with work that depends on which input came first.
        unused: by channel, slots that were reserved and never put into.
        largest: by measured channel, bytes of its largest element.
        codes: channel and code of sent elements, in order.
    """

    def __init__(
        self,
        log: Log,
        channels: int,
        sizes_bytes: Counters | None = None,
        measured: Sequence[int] = (),
    ) -> None:
        """Prepare to unroll ``log``; the largest elements of ``measured`` channels are kept."""
        self.units: Final = log.units
        self.chose: Final = log.chose
        self._sides: Final = log.sides
        self._channels: Final = log.channels
        self._ends, self._template = log.ends, log.taken
        self.sent: Final = np.zeros(channels, np.int64)
        self.unused: Final = np.zeros(channels, np.int64)
        self.largest: Final = np.zeros(channels, np.int64)
        self.codes: Final[list[tuple[Counters, Counters]]] = []
        # The state between two parts. By channel: elements taken, whether the next element was
        # looked at, whether the end was seen. Of the unit being unrolled: work since an event.
        self._taken: Counters = np.zeros(channels, np.int64)
        self._looked: Final = np.zeros(channels, np.bool_)
        self._ended: Final = np.zeros(channels, np.bool_)
        self._left_cycles = 0
        self._templates: Final = log.templates
        self._is_measured: Final = np.isin(np.arange(channels), measured)
        self._sizes: Final = sizes_bytes

    def events(self, waits: Counters) -> Iterator[Events]:
        """Yield all events in parts; ``waits`` are cycles of bursts, in order of units.

        Raises:
            ValueError: the log does not describe a run.
        """
        self._waits = waits
        counts = np.diff(self._templates.first)
        total = np.cumsum(counts[self._template])
        parts = np.arange(_BATCH, total[-1] + _BATCH, _BATCH)
        cuts = np.unique(np.searchsorted(total, parts, "right"))
        del total
        begin = 0
        for end in (*self._uncut(cuts), len(self._template)):
            if end > begin:
                yield self._unrolled(begin, end, counts)
                begin = end

    def _uncut(self, cuts: Counters) -> list[int]:
        """Move ``cuts`` behind units with requests that count from earlier readings."""
        if not self._templates.reaches.any():
            found: list[int] = cuts.tolist()
            return found
        reaching = np.flatnonzero(self._templates.reaches[self._template])
        units = np.unique(np.searchsorted(self._ends, reaching, "right"))
        its = np.searchsorted(self._ends, cuts - 1, "right")
        later: list[int] = np.where(np.isin(its, units), self._ends[its], cuts).tolist()
        return later

    def _unrolled(self, begin: int, end: int, counts: Counters) -> Events:
        templates, template = self._templates, self._template[begin:end]
        counts = counts[template]
        rows = ranges(templates.first[template], counts)
        stage = np.repeat(np.searchsorted(self._ends, np.arange(begin, end), "right"), counts)
        kind, amount = templates.kind[rows], templates.amount[rows]
        channel = self._channels[self._sides[2 * stage + _IS_OUTPUT[kind]] + templates.port[rows]]
        channel[~_IS_ON_CHANNEL[kind]] = 0
        self._count(channel, kind, rows)
        waits = np.flatnonzero(kind == e.WAIT)
        amount[waits], self._waits = np.split(self._waits, [len(waits)])
        is_event = kind != NOTHING
        self._number_arrivals(channel, kind, amount)
        self._forget_seen_before(is_event, kind, channel, np.flatnonzero(templates.stays[rows]))
        readings = readings_of(stage, kind, templates.stamp[rows])
        late = np.flatnonzero(kind == e.LATE)
        if (readings[late] < 0).any():
            raise ValueError("a request in it counts from no reading")
        is_event[kind == e.NOTE] = False
        is_event[readings[late]] = True
        kept = np.flatnonzero(is_event)
        since = np.zeros(len(kind), np.int64)
        since[late] = np.cumsum(is_event)[readings[late]] - 1
        total = np.cumsum(templates.work[rows])
        work = np.diff(total[kept], prepend=-self._left_cycles)
        self._left_cycles += int(total[-1] - work.sum()) if len(rows) else 0
        code = channel[kept] << e.SHIFT | kind[kept]
        return Events(self.units[stage[kept]], code, work, amount[kept], since[kept])

    def _count(self, channel: Counters, kind: Counters, rows: Counters) -> None:
        sent = np.flatnonzero((kind == e.SEND) | (kind == e.PUT))
        to = channel[sent]
        if (to < 0).any():
            raise ValueError("its templates are about ports that are not there")
        self.sent[:] += np.bincount(to, minlength=len(self.sent))
        self.codes.append((to, self._templates.code[rows[sent]]))
        for its, more in ((e.RESERVE, 1), (e.PUT, -1)):
            self.unused[:] += more * np.bincount(channel[kind == its], minlength=len(self.sent))
        if self._sizes is not None:
            large = self._is_measured[to]
            np.maximum.at(self.largest, to[large], self._sizes[rows[sent[large]]])

    def _number_arrivals(self, channel: Counters, kind: Counters, amount: Counters) -> None:
        """Number the element of each arrival: the next to be dequeued."""
        arrivals = np.flatnonzero(kind == e.ARRIVAL)
        is_taken = kind == e.TAKE
        if len(arrivals):
            its = channel[arrivals]
            rows = np.flatnonzero(is_taken & _among(channel, its))
            places = np.sort(channel[rows] * len(channel) + rows)
            before = np.searchsorted(places, its * len(channel) + arrivals)
            before -= np.searchsorted(places, its * len(channel))
            amount[arrivals] = self._taken[its] + before
        self._taken += np.bincount(channel[is_taken], minlength=len(self._taken))

    def _forget_seen_before(
        self, is_event: NDArray[np.bool_], kind: Counters, channel: Counters, stays: Counters
    ) -> None:
        """Remove repeated peeks at one element or end."""
        looks = (kind == e.SEE) | (kind == e.TAKE)
        may_stay = self._looked.copy()
        may_stay[channel[stays]] = True
        rows = np.flatnonzero(looks & may_stay[channel])
        rows = rows[np.argsort(channel[rows], kind="stable")]
        if len(rows):
            its, seen = channel[rows], kind[rows] == e.SEE
            begins = np.diff(its, prepend=-1) != 0
            before = np.where(begins, self._looked[its], np.append(False, seen[:-1]))
            is_event[rows[seen & before]] = False
            last = np.append(begins[1:], True)
            self._looked[its[last]] = seen[last]
        ends = np.flatnonzero(kind == e.END)
        _, first = np.unique(channel[ends], return_index=True)
        is_event[ends] = False
        first = ends[first]
        is_event[first] = ~self._ended[channel[first]]
        self._ended[channel[first]] = True


def _sequence(journal: Journal, inputs: Counters) -> tuple[Counters, Counters]:
    """Return where each stage's templates end: its first stretch, transitions, its end."""
    stages, taken = journal.rows()
    count, transitions = len(inputs), journal.tables.transitions.count
    numbers = np.arange(count)
    return sequenced(
        np.concatenate([numbers, stages, numbers]),
        np.concatenate([transitions + numbers, taken, transitions + count + inputs]),
        count,
    )


def sequenced(stages: Counters, templates: Counters, count: int) -> tuple[Counters, Counters]:
    """Return ``ends`` and ``taken`` of a ``Log``."""
    # Small numbers are sorted without comparing them.
    sequence = np.argsort(stages.astype(np.min_scalar_type(count)), kind="stable")
    return np.cumsum(np.bincount(stages, minlength=count)), templates[sequence]


def _among(numbers: Counters, some: Counters) -> NDArray[np.bool_]:
    """Return which ``numbers``, at least 0, are in ``some``; faster than sorting."""
    is_one = np.zeros(int(numbers.max()) + 1, np.bool_)
    is_one[some] = True
    return is_one[numbers]


def sizes_bytes_of(journal: Journal, templates: Templates) -> Counters:
    """Return the size of the element that each row sends; 0 for other rows."""
    sizes = np.zeros(len(templates.kind), np.int64)
    sent = np.flatnonzero((templates.kind == e.SEND) | (templates.kind == e.PUT))
    codes, which = np.unique(templates.code[sent], return_inverse=True)
    elements = [journal.codes.element(code) for code in codes.tolist()]
    found = [0 if element is None else size_bytes(element[0]) for element in elements]
    sizes[sent] = np.array(found, np.int64)[which]
    return sizes

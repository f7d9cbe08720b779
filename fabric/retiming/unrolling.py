"""From the journal of compiled operators to what each of them did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.retiming import events as e
from fabric.retiming.assembling import Events
from fabric.retiming.templates import (
    NOTHING,
    OUTPUT_KINDS,
    Templates,
    ranges,
    readings_of,
    templates_of,
)
from fabric.values.sizes import size_bytes

if TYPE_CHECKING:
    from fabric.compiled.arrays import Stage
    from fabric.compiled.journal import Journal
    from fabric.engine.channel import Channel
    from fabric.engine.machine_code import Counters

__all__ = ["Log", "Unrolled", "log_of", "ports_of", "sequenced", "sizes_bytes_of"]

_BATCH: Final = 1 << 18
"""Rows that are unrolled at a time."""


_KINDS: Final = np.arange(e.KIND + 1)

_IS_OUTPUT: Final = np.isin(_KINDS, OUTPUT_KINDS)

_IS_ON_CHANNEL: Final = _IS_OUTPUT | np.isin(_KINDS, (e.SEE, e.TAKE, e.END, e.ARRIVAL))


class Log(NamedTuple):
    """What compiled operators did, each in its order, as templates.

    Attributes:
        units: numbers of theirs.
        sides: by operator, where its inputs begin in ``channels``, and then its outputs.
        channels: of inputs and outputs, by port; -1 where nobody reads, and at the end.
        ends: by operator, where what it did ends in ``taken``.
        taken: the templates of one operator after those of another.
        templates: what they are.
        chose: units that went on with whichever input came first.
    """

    units: Counters
    sides: Counters
    channels: Counters
    ends: Counters
    taken: Counters
    templates: Templates
    chose: Counters


def log_of(journal: Journal, number: Mapping[Channel, int]) -> Log:
    """Return what is in the ``journal`` of a run that has ended; channels by ``number``."""
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
    """What compiled operators did in one run.

    Attributes:
        units: their numbers.
        chose: those that went on with whichever input came first.
        sent: by channel, elements.
        unused: by channel, slots that were reserved and never put into.
        largest: by channel, bytes of the largest element; of those that were to be measured.
        codes: of what was sent, channel and code, on each channel in its order.
    """

    def __init__(
        self,
        log: Log,
        channels: int,
        sizes_bytes: Counters | None = None,
        measured: Sequence[int] = (),
    ) -> None:
        """Get ready to unroll.

        Args:
            log: of the run.
            channels: how many there are.
            sizes_bytes: of what is sent, by row of the templates.
            measured: channels whose largest element is of interest.
        """
        self.units: Final = log.units
        self.chose: Final = log.chose
        self._sides: Final = log.sides
        self._channels: Final = log.channels
        self._ends, self._template = log.ends, log.taken
        self.sent: Final = np.zeros(channels, np.int64)
        self.unused: Final = np.zeros(channels, np.int64)
        self.largest: Final = np.zeros(channels, np.int64)
        self.codes: Final[list[tuple[Counters, Counters]]] = []
        # What is known of channels, and of the unit that is being unrolled, from one part to the
        # next: elements taken, the next one was looked at, the end was seen; work since an event.
        self._taken: Counters = np.zeros(channels, np.int64)
        self._looked: Final = np.zeros(channels, np.bool_)
        self._ended: Final = np.zeros(channels, np.bool_)
        self._left_cycles = 0
        self._templates: Final = log.templates
        self._is_measured: Final = np.isin(np.arange(channels), measured)
        self._sizes: Final = sizes_bytes

    def events(self, waits: Counters) -> Iterator[Events]:
        """Yield all events, some at a time.

        Args:
            waits: cycles of all bursts, in the order of units and of each unit's own.

        Raises:
            ValueError: the log is none of a run.
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
        """Return ``cuts`` behind the units that count from readings before them."""
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
        """Count what was sent, and measure it where that is asked for."""
        sent = np.flatnonzero((kind == e.SEND) | (kind == e.PUT))
        to = channel[sent]
        self.sent[:] += np.bincount(to, minlength=len(self.sent))
        self.codes.append((to, self._templates.code[rows[sent]]))
        for its, more in ((e.RESERVE, 1), (e.PUT, -1)):
            self.unused[:] += more * np.bincount(channel[kind == its], minlength=len(self.sent))
        if self._sizes is not None:
            large = self._is_measured[to]
            np.maximum.at(self.largest, to[large], self._sizes[rows[sent[large]]])

    def _number_arrivals(self, channel: Counters, kind: Counters, amount: Counters) -> None:
        """Say which element of its channel each arrival is about: the next to be dequeued."""
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
        """Forget later looks than the first at an element that stays, and at an end."""
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
    """Return where each stage's templates end: its first stretch, what it took, its end."""
    stages, taken = journal.rows()
    count, transitions = len(inputs), journal.tables.transitions.count
    numbers = np.arange(count)
    return sequenced(
        np.concatenate([numbers, stages, numbers]),
        np.concatenate([transitions + numbers, taken, transitions + count + inputs]),
        count,
    )


def sequenced(stages: Counters, templates: Counters, count: int) -> tuple[Counters, Counters]:
    """Return ``ends`` and ``taken`` of a ``Log``: by row, who of ``count`` took which template."""
    # Small numbers are sorted without comparing them.
    sequence = np.argsort(stages.astype(np.min_scalar_type(count)), kind="stable")
    return np.cumsum(np.bincount(stages, minlength=count)), templates[sequence]


def _among(numbers: Counters, some: Counters) -> NDArray[np.bool_]:
    """Return which ``numbers``, at least 0, are one of ``some``; quicker than to sort them."""
    is_one = np.zeros(int(numbers.max()) + 1, np.bool_)
    is_one[some] = True
    return is_one[numbers]


def sizes_bytes_of(journal: Journal, templates: Templates) -> Counters:
    """Return, by row, the size of what is sent."""
    sizes = np.zeros(len(templates.kind), np.int64)
    sent = np.flatnonzero((templates.kind == e.SEND) | (templates.kind == e.PUT))
    codes, which = np.unique(templates.code[sent], return_inverse=True)
    elements = [journal.codes.element(code) for code in codes.tolist()]
    found = [0 if element is None else size_bytes(element[0]) for element in elements]
    sizes[sent] = np.array(found, np.int64)[which]
    return sizes

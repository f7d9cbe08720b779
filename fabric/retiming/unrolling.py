"""From the journal of compiled operators to what each of them did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.retiming import events as e
from fabric.retiming.assembling import Events
from fabric.retiming.sizes import size_bytes
from fabric.retiming.templates import NOTHING, OUTPUT_KINDS, Templates, ranges, templates_of

if TYPE_CHECKING:
    from fabric.compiled.journal import Journal
    from fabric.engine.channel import Channel
    from fabric.engine.machine_code import Counters

__all__ = ["Unrolled"]

_BATCH: Final = 1 << 18
"""Events that are unrolled at a time; those of one unit are never parted."""


_KINDS: Final = np.arange(e.KIND + 1)

_IS_OUTPUT: Final = np.isin(_KINDS, OUTPUT_KINDS)

_IS_ON_CHANNEL: Final = _IS_OUTPUT | np.isin(_KINDS, (e.SEE, e.TAKE, e.END, e.ARRIVAL))


class _Sequence(NamedTuple):
    """Which template follows which.

    Attributes:
        stage: whose, in their order.
        template: see ``templates``.
        ends: by stage, where its own end.
    """

    stage: Counters
    template: Counters
    ends: Counters


class Unrolled:
    """What compiled operators did in one run.

    Attributes:
        units: their numbers.
        chose: those that went on with whichever input came first.
        sent: by channel, elements.
        largest: by channel, bytes of the largest element; of those that were to be measured.
    """

    def __init__(
        self, journal: Journal, number: Mapping[Channel, int], measured: Sequence[int]
    ) -> None:
        """Get ready to unroll.

        Args:
            journal: of the run.
            number: of each channel.
            measured: channels whose largest element is of interest.
        """
        stages = journal.stages
        self.units: Final = np.array([stage.unit.index for stage in stages], np.int64)
        self.chose: Final = self.units[journal.chose]
        ports: list[int] = []
        sides: list[int] = []
        for stage in stages:
            sides.append(len(ports))
            ports += [number[each] for each in stage.inputs]
            sides.append(len(ports))
            ports += [-1 if each is None else number[each] for each in stage.outputs]
        self._sides: Final = np.array(sides, np.int64)
        self._channels: Final = np.array([*ports, -1], np.int64)
        inputs = np.array([len(stage.inputs) for stage in stages], np.int64)
        self._sequence: Final = _sequence(journal, inputs)
        self.sent: Final = np.zeros(len(number), np.int64)
        self.largest: Final = np.zeros(len(number), np.int64)
        count = journal.tables.transitions.count + len(stages) + int(inputs.max()) + 1
        used = np.bincount(self._sequence.template, minlength=count) > 0
        stretches = [stage.automaton.first_stretch for stage in stages]
        self._templates: Final = templates_of(journal.tables, stretches, int(inputs.max()), used)
        self._is_measured: Final = np.isin(np.arange(len(number)), measured)
        self._sizes: Final = _sizes_bytes(journal, self._templates)

    def events(self, waits: Counters) -> Iterator[Events]:
        """Yield all events, those of several units at a time.

        Args:
            waits: cycles of all bursts, in the order of units and of each unit's own.
        """
        self._waits = waits
        templates, sequence = self._templates, self._sequence
        counts = np.diff(templates.first)[sequence.template]
        total = np.concatenate([[0], np.cumsum(counts)])[sequence.ends]
        begin = done = 0
        for last, (end, rows) in enumerate(
            zip(sequence.ends.tolist(), total.tolist(), strict=True)
        ):
            if rows - done >= _BATCH or last == len(total) - 1:
                yield self._unrolled(slice(begin, end), counts[begin:end])
                begin, done = end, rows

    def _unrolled(self, which: slice, counts: Counters) -> Events:
        templates = self._templates
        rows = ranges(templates.first[self._sequence.template[which]], counts)
        stage = np.repeat(self._sequence.stage[which], counts)
        kind, amount = templates.kind[rows], templates.amount[rows]
        channel = self._channels[self._sides[2 * stage + _IS_OUTPUT[kind]] + templates.port[rows]]
        channel[~_IS_ON_CHANNEL[kind]] = 0
        self._count(channel, kind, rows)
        waits = np.flatnonzero(kind == e.WAIT)
        amount[waits], self._waits = np.split(self._waits, [len(waits)])
        arrivals = np.flatnonzero(kind == e.ARRIVAL)
        if len(arrivals):
            before = _before(channel, kind == e.TAKE, arrivals)
            amount[arrivals] = before
        is_event = kind != NOTHING
        _forget_seen_before(is_event, kind, channel, np.flatnonzero(templates.stays[rows]))
        _forget_unasked(is_event, kind, stage)
        kept = np.flatnonzero(is_event)
        work = np.diff(np.cumsum(templates.work[rows])[kept], prepend=0)
        code = channel[kept] << e.SHIFT | kind[kept]
        return Events(self.units[stage[kept]], code, work, amount[kept])

    def _count(self, channel: Counters, kind: Counters, rows: Counters) -> None:
        """Count what was sent, and measure it where that is asked for."""
        sent = np.flatnonzero((kind == e.SEND) | (kind == e.PUT))
        to = channel[sent]
        self.sent[:] += np.bincount(to, minlength=len(self.sent))
        its = self._is_measured[to]
        np.maximum.at(self.largest, to[its], self._sizes[rows[sent[its]]])


def _sequence(journal: Journal, inputs: Counters) -> _Sequence:
    """Return transitions that were taken, each stage's between its first stretch and its end."""
    stage, taken = journal.taken()
    count, transitions = len(inputs), journal.tables.transitions.count
    numbers = np.arange(count)
    lengths = np.bincount(stage, minlength=count) + 2
    ends = np.cumsum(lengths)
    template = np.empty(len(taken) + 2 * count, np.int64)
    between = np.ones(len(template), np.bool_)
    between[ends - 1] = between[ends - lengths] = False
    template[between] = taken
    template[ends - lengths] = transitions + numbers
    template[ends - 1] = transitions + count + inputs
    return _Sequence(np.repeat(numbers, lengths), template, ends)


def _among(numbers: Counters, some: Counters) -> NDArray[np.bool_]:
    """Return which ``numbers``, at least 0, are one of ``some``; quicker than to sort them."""
    is_one = np.zeros(int(numbers.max()) + 1, np.bool_)
    is_one[some] = True
    return is_one[numbers]


def _before(channel: Counters, counted: NDArray[np.bool_], its: Counters) -> Counters:
    """Return for rows ``its`` how many on the same channel counted before them."""
    rows = np.flatnonzero(counted & _among(channel, channel[its]))
    keys = np.sort(channel[rows] * len(channel) + rows)
    begin = np.searchsorted(keys, channel[its] * len(channel))
    return np.searchsorted(keys, channel[its] * len(channel) + its) - begin


def _forget_seen_before(
    is_event: NDArray[np.bool_], kind: Counters, channel: Counters, stays: Counters
) -> None:
    """Forget later looks than the first at an element that stays, and at an end."""
    if len(stays):
        looks = (kind == e.SEE) | (kind == e.TAKE)
        rows = np.flatnonzero(looks & _among(channel, channel[stays]))
        ordered = rows[np.argsort(channel[rows], kind="stable")]
        again = (channel[ordered[1:]] == channel[ordered[:-1]]) & (kind[ordered[:-1]] == e.SEE)
        is_event[ordered[1:][again & (kind[ordered[1:]] == e.SEE)]] = False
    ends = np.flatnonzero(kind == e.END)
    _, first = np.unique(channel[ends], return_index=True)
    is_event[ends] = False
    is_event[ends[first]] = True


def _forget_unasked(is_event: NDArray[np.bool_], kind: Counters, stage: Counters) -> None:
    """Forget readings of a clock that nothing is asked for since."""
    rows = np.flatnonzero((kind == e.NOTE) | (kind == e.LATE))
    if len(rows):
        asked = (kind[rows[1:]] == e.LATE) & (stage[rows[1:]] == stage[rows[:-1]])
        is_event[rows[~np.append(asked, False) & (kind[rows] == e.NOTE)]] = False


def _sizes_bytes(journal: Journal, templates: Templates) -> Counters:
    """Return, by row, the size of what is sent."""
    sizes = np.zeros(len(templates.kind), np.int64)
    sent = np.flatnonzero((templates.kind == e.SEND) | (templates.kind == e.PUT))
    codes, which = np.unique(templates.code[sent], return_inverse=True)
    elements = [journal.codes.element(code) for code in codes.tolist()]
    found = [0 if element is None else size_bytes(element[0]) for element in elements]
    sizes[sent] = np.array(found, np.int64)[which]
    return sizes

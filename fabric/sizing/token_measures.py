"""What StreamTensor's model has to know of each channel, measured in the timing of a record."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.retiming import events as e

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.retiming.retimer import Retimer

__all__ = ["Measured", "measured"]


class Measured(NamedTuple):
    """A channel in a run without bounds.

    Attributes:
        number: in edge order.
        source: the unit that sends.
        target: the unit that receives.
        tokens: that were sent, at least 1.
        delay_cycles: from the start of the source until the first of them is visible.
        source_interval_cycles: of the source's own time from one to the next, at least 1.
        target_interval_cycles: of the target's own time from one to the next, at least 1.
        loop_cycles: the most that a slot was taken before its element was visible, and those
            that a credit takes to come back.
        awaited: whether the target takes one before it sends anything.
    """

    number: int
    source: int
    target: int
    tokens: int
    delay_cycles: int
    source_interval_cycles: Fraction
    target_interval_cycles: Fraction
    loop_cycles: int
    awaited: bool


def measured(retimer: Retimer) -> list[Measured]:
    """Return what the last timing of a record shows of each channel that carried something.

    A unit starts when it has had the first element of each input that it takes before it sends
    anything; one that takes none starts with the run. Its own time is when it waits for no
    channel. Where every firing takes one element of each input and gives one to each output,
    intervals are the same on all sides of a unit, and all this is what the paper measures.
    """
    record = retimer.record
    kinds, on = record.events[:, 0] & e.KIND, record.events[:, 0] >> e.SHIFT
    count, units = len(record.channels), len(record.units)
    never = len(record.events)
    put, taken = record.places(e.SEND, e.PUT), record.places(e.TAKE)
    looked = _first(on, np.isin(kinds, (e.SEE, e.TAKE)), count)
    sends = _first(record.unit_of, np.isin(kinds, (e.SEND, e.PUT)), units)
    starts = np.zeros(units, np.int64)
    awaited = np.zeros(count, np.bool_)
    for number, channel in enumerate(record.channels):
        place = looked[number]
        if place < min(sends[channel.consumer], never):
            awaited[number] = True
            cycle = retimer.clocks[place]
            starts[channel.consumer] = max(starts[channel.consumer], cycle)
    own = _own_cycles(retimer, kinds)
    dequeued = np.bincount(on[kinds == e.TAKE], minlength=count)
    found = []
    for number, channel in enumerate(record.channels):
        first, tokens = int(retimer.base[number]), channel.elements
        if not tokens:
            continue
        its = slice(first, first + tokens)
        hold_cycles = int((retimer.visible[its] - retimer.issued[its]).max())
        found.append(
            Measured(
                number,
                channel.producer,
                channel.consumer,
                tokens,
                int(retimer.visible[first] - starts[channel.producer]),
                _interval_cycles(own[put[its]]),
                _interval_cycles(own[taken[first : first + dequeued[number]]]),
                hold_cycles + channel.backward_cycles,
                bool(awaited[number]),
            )
        )
    return found


def _first(of: Counters, which: NDArray[np.bool_], count: int) -> Counters:
    """Return by what they are ``of`` the first of some events; behind all where there is none."""
    found = np.full(count, len(of))
    its = np.flatnonzero(which)
    np.minimum.at(found, of[its], its)
    return found


def _own_cycles(retimer: Retimer, kinds: Counters) -> Counters:
    """Return by event how long units were not waiting for a channel up to then."""
    events, clocks = retimer.record.events, retimer.clocks
    works = (kinds <= e.LAST_WORKED) | (kinds == e.WORK) | (kinds == e.WAIT)
    own = np.where(works, events[:, 1], 0)
    busy = np.flatnonzero(kinds == e.UNTIL)
    own[busy] = clocks[busy] - clocks[busy - 1]
    return np.cumsum(own)


def _interval_cycles(own: Counters) -> Fraction:
    if len(own) < 2:
        return Fraction(1)
    return max(Fraction(1), Fraction(int(own[-1] - own[0]), len(own) - 1))

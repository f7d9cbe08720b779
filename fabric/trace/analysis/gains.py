"""What a run would gain if one thing were quicker: its record, timed again without that."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fabric.retiming.retimer import Retimer
from fabric.telling.errors import ConfigurationError
from fabric.trace.reading.record_in import record_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fabric.engine.machine_code import Counters
    from fabric.retiming.record import Record
    from fabric.trace.reading.reader import RecordedRun
    from fabric.trace.reading.wording import Names

__all__ = ["Gain", "gains_of"]


class Gain(NamedTuple):
    """A run without one of the things it takes time for.

    Attributes:
        name: the thing.
        cycles: that the run would take if the thing took no time.
        half_cycles: if it took half as long; None of channel depth, which is as it is or unlimited.
        estimated: whether a run may take another time, since units or memories that serve whoever
            comes first would meet others.
        file, line: where the unit was wired; empty and 0 where it is no unit.
    """

    name: str
    cycles: int
    half_cycles: int | None
    estimated: bool
    file: str = ""
    line: int = 0


def gains_of(trace: RecordedRun, names: Names, units: Iterable[int]) -> tuple[Gain, ...] | None:
    """Return what would make the run shorter, the most first; None where it cannot be timed again.

    Tried are memories that never let a unit wait, channels that are never full, and each of
    ``units`` by itself without its work.
    """
    try:
        record = record_in(trace)
    except ConfigurationError:
        return None
    gains = [gain for gain in _tried(record, names, units) if gain.cycles < record.cycles]
    return tuple(sorted(gains, key=lambda gain: gain.cycles))


def _tried(record: Record, names: Names, units: Iterable[int]) -> Iterator[Gain]:
    estimated = not record.determinate
    if record.clients:
        without = partial(record.with_waits, record.clients)
        yield Gain("the HBM", *_less_of(without), bool(record.choosers))
    if record.shares_on_chip:
        others = sorted(set(range(len(record.units))) - set(record.clients))
        without = partial(record.with_waits, others)
        yield Gain("on-chip capacity", *_less_of(without), estimated)
    for unit in units:
        name, place = names.units[unit], names.wired[unit]
        without = partial(record.with_work, name)
        yield Gain(name, *_less_of(without), estimated, place.file, place.line)
    deep = np.maximum(record.elements, record.depths)
    yield Gain("channel depth", _cycles(record, deep), None, estimated)


def _less_of(changed: Callable[[float], Record]) -> tuple[int, int]:
    """Return the cycles of a record in which one thing takes no time, and half of it."""
    none, half = changed(0), changed(0.5)
    return _cycles(none, none.depths), _cycles(half, half.depths)


def _cycles(record: Record, depths: Counters) -> int:
    """Return what the record takes; nothing that is quicker keeps it from its end."""
    cycles = Retimer(record).time(depths).cycles
    assert cycles is not None
    return cycles

"""What a run would gain if one thing were quicker: its record, timed again without that."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

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

__all__ = ["Gain", "by_change", "gains_of"]

_KINDS: Final = ("memory", "links", "family", "depth")


_LINKS: Final = "the links of the network"


class Gain(NamedTuple):
    """A run without one of the things it takes time for.

    Attributes:
        kind: of the thing: a memory, the links of a network, a family of units, or the depth of
            channels.
        name: the thing.
        cycles: that the run would take if the thing took no time.
        half_cycles: if it took half as long, of links if they carried twice as much; None of
            channel depth, which is as it is or unlimited.
        estimated: whether a run may take another time, since units or memories that serve whoever
            comes first would meet others.
        file, line: where the units were wired; empty and 0 where it is no family.
    """

    kind: Literal["memory", "links", "family", "depth"]
    name: str
    cycles: int
    half_cycles: int | None
    estimated: bool
    file: str = ""
    line: int = 0

    @property
    def change(self) -> str:
        """What a person would change, in words."""
        if self.kind == "depth":
            return "every channel were unbounded"
        if self.kind == "links":
            return f"{self.name} were unlimited"
        if self.kind == "memory":
            answers = self.name == "the HBM"
            return f"{self.name} answered at once" if answers else f"{self.name} were unlimited"
        return f"{self.name} took half as long"

    @property
    def changed_cycles(self) -> int:
        """That the run would take after ``change``."""
        if self.kind == "family" and self.half_cycles is not None:
            return self.half_cycles
        return self.cycles


def by_change(gains: Iterable[Gain]) -> list[Gain]:
    """Return ``gains`` as a person would try them: memories, links, families, then all channels."""
    return sorted(gains, key=lambda gain: (_KINDS.index(gain.kind), gain.changed_cycles))


def gains_of(trace: RecordedRun, names: Names, families: Iterable[int]) -> tuple[Gain, ...] | None:
    """Return what would make the run shorter, the most first; None where it cannot be timed again.

    Tried are memories that never let a unit wait, links that carry any number of bytes, channels
    that are never full, and each of ``families``, by their first units, without its work and its
    waits for memories.
    """
    try:
        record = record_in(trace)
    except ConfigurationError:
        return None
    gains = [gain for gain in _tried(record, names, families) if gain.cycles < record.cycles]
    return tuple(sorted(gains, key=lambda gain: gain.cycles))


def _tried(record: Record, names: Names, families: Iterable[int]) -> Iterator[Gain]:
    estimated = not record.determinate
    if record.clients:
        without = partial(record.with_waits, record.clients)
        yield Gain("memory", "the HBM", *_less_of(without), bool(record.choosers))
    if record.shares_on_chip:
        others = sorted(set(range(len(record.units))) - set(record.clients))
        without = partial(record.with_waits, others)
        yield Gain("memory", "on-chip capacity", *_less_of(without), estimated)
    if record.links is not None:
        unlimited, double = record.with_links(math.inf), record.with_links(2)
        cycles, half_cycles = (_cycles(each, each.depths) for each in (unlimited, double))
        yield Gain("links", _LINKS, cycles, half_cycles, estimated)
    for unit in families:
        family, place = names.family_of(unit), names.wired[unit]
        without = partial(record.with_pace, family.members)
        yield Gain("family", family.title, *_less_of(without), estimated, place.file, place.line)
    deep = np.maximum(record.elements, record.depths)
    yield Gain("depth", "channel depth", _cycles(record, deep), None, estimated)


def _less_of(changed: Callable[[float], Record]) -> tuple[int, int]:
    """Return the cycles of a record in which one thing takes no time, and half of it."""
    none, half = changed(0), changed(0.5)
    return _cycles(none, none.depths), _cycles(half, half.depths)


def _cycles(record: Record, depths: Counters) -> int:
    """Return what the record takes; nothing that is quicker keeps it from its end."""
    cycles = Retimer(record).time(depths).cycles
    assert cycles is not None
    return cycles

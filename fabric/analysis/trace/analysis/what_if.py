"""The time of a recorded run with other units, depths or links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from fabric.analysis.trace.analysis.other_memory import memory_of, port_bytes, rate_text, scaled
from fabric.analysis.trace.analysis.what_if_result import (
    ChannelWaits,
    MovedEnd,
    ReleasedUnit,
    WaitingUnit,
    WhatIf,
)
from fabric.analysis.trace.reading.names import Names, percent
from fabric.analysis.trace.reading.reader import RecordedRun, refused
from fabric.analysis.trace.reading.record_in import record_in, stopped_in
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import close_to, counted
from fabric.timing.engine import log
from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Blocked, Retimer, Waits, waits_of

_LINKS: Final = "the links of the network"
_THE_HBM: Final = "the HBM"

_DEEPEST: Final = 1 << 60

_HBM: Final = (
    ("bandwidth", 2, "the HBM had twice its {peak} a cycle"),
    ("latency", 0.5, "the HBM had half the latency"),
    ("ports", 2, "units had ports of twice their {port} a cycle to the HBM"),
)


class Gain(NamedTuple):
    """A run without the time of one resource, or with a faster HBM (``hbm``).

    ``half_cycles``: of the run if the resource took half as long, or links carried twice as much;
    None for other changes.
    """

    kind: Literal["memory", "hbm", "links", "family", "depth"]
    name: str  # of the resource; the change in words for a faster HBM
    cycles: int  # of the run if the resource took no time, or with the faster HBM
    half_cycles: int | None
    estimated: bool  # the order of arrivals may change, and the cycles with it
    file: str = ""  # file and line in which the units of a family were wired
    line: int = 0

    @property
    def change(self) -> str:
        """The change of the program or the hardware, in words."""
        if self.kind == "depth":
            return "every channel were unbounded"
        if self.kind == "hbm":
            return self.name
        if self.kind == "family":
            return f"{self.name} took half as long"
        return f"{self.name} {'took no time' if self.name == _THE_HBM else 'were unlimited'}"

    @property
    def changed_cycles(self) -> int:
        """The cycles of the run after ``change``."""
        if self.kind == "family" and self.half_cycles is not None:
            return self.half_cycles
        return self.cycles


def large_gains(gains: Iterable[Gain], cycles: int) -> tuple[list[Gain], str]:
    """Return the gains of 1 % of ``cycles`` or more, and a sentence about all others."""
    ranked = sorted(gains, key=lambda gain: gain.changed_cycles)
    large = [gain for gain in ranked if 100 * (cycles - gain.changed_cycles) >= cycles]
    small = ranked[len(large) :]
    if not small:
        return large, ""
    most = f"at most {percent(cycles - small[0].changed_cycles, cycles)} %, if {small[0].change}"
    many = counted(len(small), "more change" if large else "change")
    return large, f"{many} would save less than 1 % each: {most}."


def gains_of(trace: RecordedRun, names: Names, families: Iterable[int]) -> tuple[Gain, ...] | None:
    """Return the gains, largest first; None if the run cannot be timed again.

    The changes are memories without waits, a faster HBM, links without limits, channels that are
    never full, and each of ``families`` without its work and its waits for memories. A family is
    given by its first unit.
    """
    try:
        record = record_in(trace)
    except ConfigurationError:
        return None
    tried = [*_hbm_gains(trace, record), *_possible_gains(record, names, families)]
    gains = [gain for gain in tried if gain.cycles < record.cycles]
    return tuple(sorted(gains, key=lambda gain: gain.cycles))


def _hbm_gains(trace: RecordedRun, record: Record) -> Iterator[Gain]:
    memory = memory_of(trace)
    if memory is None or not record.clients:
        return
    peak, port = rate_text(float(memory.peak_bytes_per_cycle)), rate_text(port_bytes(memory) or 0)
    for key, factor, change in _HBM:
        changed = scaled(memory, key, factor)
        if changed is not None:
            after = record.with_memory(memory, changed)
            name = change.format(peak=peak, port=port)
            yield Gain("hbm", name, _cycles(after, after.depths), None, estimated=True)


def _possible_gains(record: Record, names: Names, families: Iterable[int]) -> Iterator[Gain]:
    estimated = not record.determinate
    if record.clients:
        without = partial(record.with_waits, record.clients)
        yield Gain("memory", _THE_HBM, *_less_of(without), bool(record.choosers))
    if record.shares_on_chip:
        rest = sorted(set(range(len(record.units))) - set(record.clients))
        without = partial(record.with_waits, rest)
        yield Gain("memory", "on-chip capacity", *_less_of(without), estimated)
    if record.links is not None:
        unlimited, double = record.with_links(math.inf), record.with_links(2)
        cycles, half_cycles = (_cycles(changed, changed.depths) for changed in (unlimited, double))
        yield Gain("links", _LINKS, cycles, half_cycles, estimated)
    for unit in families:
        family, place = names.family[unit], names.wired[unit]
        without = partial(record.with_pace, family.members)
        yield Gain("family", family.title, *_less_of(without), estimated, place.file, place.line)
    deep = np.maximum(record.elements, record.depths)
    yield Gain("depth", "channel depth", _cycles(record, deep), None, estimated)


def _less_of(changed: Callable[[float], Record]) -> tuple[int, int]:
    """Return the cycles of a record if one resource takes no time, and if it takes half."""
    none, half = changed(0), changed(0.5)
    return _cycles(none, none.depths), _cycles(half, half.depths)


def _cycles(record: Record, depths: Counters) -> int:
    cycles = Retimer(record).time(depths).cycles
    assert cycles is not None
    return cycles


def what_if_of(
    trace: RecordedRun,
    depths: Mapping[str, int],
    work: Mapping[str, float],
    links: float,
    hbm: Mapping[str, float],
) -> WhatIf:
    """Return the cycles of ``trace`` with the changes that ``Trace.what_if`` describes.

    Later patterns of ``depths`` and ``work`` override earlier ones.
    """
    if not links > 0:
        raise refused(f"links is {links}: expected a factor above 0")
    if links != 1 and not trace.shared_channels:
        raise refused("links: expected the trace of a run with [network] links that have a limit")
    hbm = {key: factor for key, factor in hbm.items() if factor != 1}
    stopped = trace.status == "deadlock"
    record, waiting = stopped_in(trace) if stopped else (record_in(trace), ())
    changed, names = _depth_changes(record, depths), Names(trace)
    faster = _with_hbm(trace, _with_work(record, names, work), hbm)
    after = Retimer(faster.with_links(links))
    vector = [changed.get(channel.option, channel.depth) for channel in record.channels]
    retimed = after.time(vector)
    cycles = None if stopped else retimed.cycles
    waits = None
    if cycles is not None:
        before = Retimer(record)
        before.time(record.depths)
        waits = waits_of(before), waits_of(after)
    still = {blocked.unit for blocked in retimed.blocked}
    released = [_released_unit(record, after, unit) for unit in waiting if unit not in still]
    return WhatIf(
        name=record.program,
        depths=changed,
        work=dict(work),
        links=links,
        hbm=hbm,
        cycles_before=record.cycles,
        cycles=cycles,
        reasons=_reasons(record, work, links, hbm, ended=cycles is not None),
        units=_units(names, *waits) if waits else (),
        channels=_channels(record, vector, *waits) if waits else (),
        loop=tuple(_waiting_unit(record, vector, unit) for unit in after.loop_of(retimed.blocked)),
        stopped=stopped,
        released=tuple(sorted(released, key=lambda unit: (unit.cycle, unit.name))),
    )


def _with_hbm(trace: RecordedRun, record: Record, hbm: Mapping[str, float]) -> Record:
    memory = memory_of(trace)
    for key, factor in hbm.items():
        if not (math.isfinite(factor) and factor > 0):
            raise refused(f"hbm_{key} is {factor}: expected a finite factor above 0")
        changed = None if memory is None else scaled(memory, key, factor)
        if memory is None or changed is None:
            states = f"a flat, banked or fixed memory that states its {key}, and a result in range"
            raise refused(f"hbm_{key} is {factor}: expected {states}")
        record, memory = record.with_memory(memory, changed), changed
    return record


def _released_unit(record: Record, after: Retimer, unit: int) -> ReleasedUnit:
    last = int(record.first[unit + 1]) - 1
    code, cycle = int(record.events[last, 0]), int(after.clocks[last])
    full = code & log.KIND == log.SEND
    return ReleasedUnit(record.units[unit], record.channels[code >> log.SHIFT].name, full, cycle)


def _with_work(record: Record, names: Names, work: Mapping[str, float]) -> Record:
    families = {family.title: family.members for family in names.families}
    factors: dict[int, float] = {}
    for pattern, factor in work.items():
        units = [unit for unit, name in enumerate(record.units) if _fits(name, pattern)]
        units = units or list(families.get(pattern, ()))
        if not units:
            near = close_to(list(dict.fromkeys([*record.units, *families])), pattern)
            raise refused(f"work of {pattern}: no unit or family has that name: expected {near}")
        if not (math.isfinite(factor) and factor >= 0):
            raise refused(f"work of {pattern} is {factor}: expected a factor of 0 or more")
        factors |= dict.fromkeys(units, factor)
    for factor in dict.fromkeys(factors.values()):
        record = record.with_pace([unit for unit in factors if factors[unit] == factor], factor)
    return record


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _depth_changes(record: Record, depths: Mapping[str, int]) -> dict[str, int]:
    options = list(record.number)
    changed: dict[str, int] = {}
    for pattern, depth in depths.items():
        fitting = [option for option in options if _fits(option, pattern)]
        if not fitting:
            near = close_to(options, pattern)
            raise refused(f"depth of {pattern}: no channel has that name: expected {near}")
        if depth < 1:
            raise refused(f"depth of {pattern} is {depth}: expected at least 1")
        changed |= dict.fromkeys(fitting, min(depth, _DEEPEST))
    return changed


def _reasons(
    record: Record,
    work: Mapping[str, float],
    links: float,
    hbm: Mapping[str, float],
    *,
    ended: bool,
) -> tuple[str, ...]:
    # With fixed orders of operations, times do not decide whether a run completes.
    if not ended and record.orders_are_fixed:
        return ()
    reasons = [
        f"{pattern} takes {factor:g} times as long, rounded to cycles"
        for pattern, factor in work.items()
    ]
    if hbm:
        reasons.append("waits for the HBM are estimated from its bandwidth, latency and ports")
    capacities = () if record.links is None or math.isinf(links) else record.links.capacities
    if any(capacity * links % 1 for capacity in capacities):
        reasons.append(f"links carry {links:g} times as much, rounded to bytes a cycle")
    return (*record.arbitrated, *reasons)


def _units(names: Names, before: Waits, after: Waits) -> tuple[MovedEnd, ...]:
    ends = zip(names.units, names.wired, before.ends.tolist(), after.ends.tolist(), strict=True)
    moved = [MovedEnd(name, *wired, was, will) for name, wired, was, will in ends if was != will]
    return tuple(sorted(moved, key=lambda unit: -abs(unit.after_cycle - unit.before_cycle)))


def _channels(
    record: Record, depths: list[int], before: Waits, after: Waits
) -> tuple[ChannelWaits, ...]:
    columns = (before.empty, after.empty, before.full, after.full)
    rows = zip(record.channels, depths, *(column.tolist() for column in columns), strict=True)
    changed = [
        ChannelWaits(channel.name, channel.depth, depth, *cycles)
        for channel, depth, *cycles in rows
        if cycles[0] != cycles[1] or cycles[2] != cycles[3]
    ]
    return tuple(sorted(changed, key=_change, reverse=True))


def _change(waits: ChannelWaits) -> int:
    empty_cycles = waits.empty_after_cycles - waits.empty_before_cycles
    return abs(empty_cycles) + abs(waits.full_after_cycles - waits.full_before_cycles)


def _waiting_unit(record: Record, depths: list[int], blocked: Blocked) -> WaitingUnit:
    channel = record.channels[blocked.channel]
    other = channel.consumer if blocked.full else channel.producer
    return WaitingUnit(
        record.units[blocked.unit],
        channel.name,
        depths[blocked.channel],
        blocked.full,
        record.units[other],
    )

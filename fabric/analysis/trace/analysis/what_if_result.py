"""The result of timing a recorded run again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fabric.analysis.trace.reading.names import percent
from fabric.display.parts import SHOWN as ROWS
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.place import Place
from fabric.messages.text import counted

_DEPTHS_SHOWN: Final = 4


@dataclass(frozen=True)
class MovedEnd:
    name: str
    file: str
    line: int
    before_cycle: int
    after_cycle: int


class ChannelWaits(NamedTuple):
    """A channel with changed waits: ``empty`` of its consumer, ``full`` of its producer."""

    name: str
    depth_before: int
    depth_after: int
    empty_before_cycles: int
    empty_after_cycles: int
    full_before_cycles: int
    full_after_cycles: int


class WaitingUnit(NamedTuple):
    """A unit that would wait forever for a slot (``full``) or an element of ``other``."""

    name: str
    channel: str
    depth: int
    full: bool
    other: str


class ReleasedUnit(NamedTuple):
    """A unit that waited forever in the recorded run, and would have continued in ``cycle``."""

    name: str
    channel: str
    full: bool
    cycle: int


@dataclass(frozen=True, repr=False)
class WhatIf(Result):
    """A recorded run, timed again."""

    name: str
    depths: Mapping[str, int]
    work: Mapping[str, float]
    links: float
    hbm: Mapping[str, float]
    cycles_before: int
    cycles: int | None  # None if units block each other, or the recorded run deadlocked
    reasons: tuple[str, ...]  # why a run may differ
    units: tuple[MovedEnd, ...] = field(repr=False)
    channels: tuple[ChannelWaits, ...] = field(repr=False)
    loop: tuple[WaitingUnit, ...]  # units that would block each other, each waiting for the next
    stopped: bool = False  # the recorded run deadlocked
    released: tuple[ReleasedUnit, ...] = ()  # units that would have continued in a deadlocked run

    @property
    def exact(self) -> bool:
        """Whether a run would end in the same way, with the same ``cycles``."""
        return not self.reasons

    def sheet(self, shown: int = ROWS) -> Sheet:
        """Yield the changed cycles and waits; ``shown`` rows of each table at most."""
        yield line((self.name, "bold"), f"  {_changes(self)}")
        yield line()
        yield line((_verdict(self), "bold"))
        if self.released:
            yield from _released(self, shown)
            return
        for unit in self.loop:
            yield line(f"  {_blocked(unit)}")
        yield from _exactness(self)
        yield from _tables(self, shown)


def _changes(result: WhatIf) -> str:
    depths = [f"{option} {depth:,} deep" for option, depth in result.depths.items()]
    if len(depths) > _DEPTHS_SHOWN:
        depths[_DEPTHS_SHOWN:] = [f"{counted(len(depths) - _DEPTHS_SHOWN, 'more channel')}"]
    work = [f"{unit} takes {factor:g} times as long" for unit, factor in result.work.items()]
    hbm = [
        f"the HBM has {factor:g} times the {'width of ports' if key == 'ports' else key}"
        for key, factor in result.hbm.items()
    ]
    links = [] if result.links == 1 else [_links(result.links)]
    return "; ".join(depths + work + hbm + links) or "as it was run"


def _links(factor: float) -> str:
    if math.isinf(factor):
        return "links of the network have no limit"
    return f"links of the network carry {factor:g} times as much"


def _verdict(result: WhatIf) -> str:
    if result.released:
        first = result.released[0]
        more = len(result.released) - 1
        others = f", and {counted(more, 'more unit')} after it" if more else ""
        return f"It would have continued: {first.name} in cycle {first.cycle:,}{others}."
    waits = f"{counted(len(result.loop), 'unit')} would wait for each other for ever"
    if result.stopped:
        return f"It would still deadlock: {waits if result.loop else 'no unit would continue'}."
    if result.cycles is None:
        return f"It would deadlock: {waits}."
    before = result.cycles_before
    more = result.cycles - before
    change = "as many" if not more else f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
    share = f" ({percent(abs(more), before)} %)" if more else ""
    return f"{counted(before, 'cycle')} before, {result.cycles:,} after: {change}{share}."


def _blocked(unit: WaitingUnit) -> str:
    state = f"full, {counted(unit.depth, 'slot')}" if unit.full else "empty"
    return f"{unit.name} waits for {unit.other}: {unit.channel} is {state}"


def _released(result: WhatIf, shown: int) -> Sheet:
    for unit in result.released[:shown]:
        way = "sends to" if unit.full else "receives from"
        yield line(f"  cycle {unit.cycle:,}  {unit.name} {way} {unit.channel}")
    if len(result.released) > shown:
        yield line(f"  and {len(result.released) - shown:,} more")
    if result.loop:
        count = counted(len(result.loop), "unit")
        yield line(f"{count} would still wait for each other:")
        for waiting in result.loop:
            yield line(f"  {_blocked(waiting)}")
    yield from _exactness(result)
    yield line("The record ends there: run the program with these depths to see if it completes.")


def _exactness(result: WhatIf) -> Sheet:
    if result.exact:
        ends = "take as long" if result.cycles else "end in the same way"
        yield line(f"Exact: a run would {'continue there' if result.released else ends}.")
        return
    yield line("Estimated: a run may differ, since")
    for reason in result.reasons:
        yield line(f"  {reason}")
    if not result.hbm and any(reason.startswith("the HBM ") for reason in result.reasons):
        yield line("Waits for the HBM are as long here as they were in the run.")


def _tables(result: WhatIf, shown: int) -> Sheet:
    if result.units:
        yield Title("Units that would end in another cycle")
        rows = []
        for unit in result.units:
            change = f"{unit.after_cycle - unit.before_cycle:+,}"
            place = Place(unit.file, unit.line).brief
            rows.append((unit.name, unit.before_cycle, unit.after_cycle, change, place))
        titles = ("unit", "end before", "end after", "change", "wired at")
        yield Rows(titles, rows, shown)
    if result.channels:
        yield Title("Channels", ", cycles that units would wait for them")
        waits = [(channel.name, _depth(channel), *channel[3:]) for channel in result.channels]
        columns = ("channel", "depth", "empty before", "empty after", "full before", "full after")
        yield Rows(columns, waits, shown)


def _depth(waits: ChannelWaits) -> str:
    if waits.depth_before == waits.depth_after:
        return f"{waits.depth_before:,}"
    return f"{waits.depth_before:,} to {waits.depth_after:,}"

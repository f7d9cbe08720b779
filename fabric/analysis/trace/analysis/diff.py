"""The first difference of two runs, and the units that got slower."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.parts import SHOWN as ROWS
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.place import Place
from fabric.messages.text import counted

COMPARED: Final = tuple(cause for cause in SHOWN if cause is not Cause.IDLE)
"""Causes with compared cycles, without idle: a unit that ends later is idle for less."""

_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}

_EVENTS = (
    "SELECT c.name, element, sent_cycle, taken_cycle FROM transfers JOIN channels c USING (channel)"
)


class Stamps(NamedTuple):
    """Cycles of an element's send and dequeue; ``taken_cycle`` is unset until the dequeue."""

    sent_cycle: int
    taken_cycle: int | None


@dataclass(frozen=True)
class Setting:
    """A parameter or a hardware value that differs, such as ``hardware.channel.depth``."""

    name: str
    in_a: object
    in_b: object


@dataclass(frozen=True)
class Parting:
    """The earliest transfer that differs; a run without this transfer has no stamps."""

    cycle: int
    channel: str
    element: int
    in_a: Stamps | None
    in_b: Stamps | None


@dataclass(frozen=True)
class UnitChange:
    """Changes of a unit from A to B, in cycles; ``ended_in_a`` is unset if not recorded."""

    name: str
    file: str
    line: int
    ended_in_a: bool | None
    ended_in_b: bool | None
    end_cycles: int
    busy_cycles: int
    empty_cycles: int
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int


@dataclass(frozen=True, repr=False)
class TraceDiff(Result):
    """Two runs side by side; units and channels are matched by name.

    Attributes:
        names, outcomes, cycles: of the programs and the runs, A and B.
        settings: settings that differ, by name.
        parting: the first transfer that differs; None if all are equal.
        units: changed units of both runs, the most delayed end first; units that did not end in B
            come before all others.
    """

    names: tuple[str, str]
    outcomes: tuple[str, str]
    cycles: tuple[int, int]
    settings: tuple[Setting, ...]
    parting: Parting | None
    units: tuple[UnitChange, ...] = field(repr=False)

    def sheet(self, shown: int = ROWS) -> Sheet:
        runs = zip("AB", self.names, self.outcomes, self.cycles, strict=True)
        for letter, name, outcome, cycles in runs:
            yield line(f"{letter}  {name}  {outcome}, {counted(cycles, 'cycle')}")
        for each in self.settings:
            yield line(f"   {each.name}: {each.in_a} in A, {each.in_b} in B")
        yield line()
        parting = self.parting
        if parting is None:
            yield line("Every transfer happened in the same cycles.")
        else:
            where = f"element {parting.element:,} of {parting.channel}"
            yield line(f"They part at cycle {parting.cycle:,}: {where}")
            yield line(f"   in A {_stamps(parting.in_a)}")
            yield line(f"   in B {_stamps(parting.in_b)}")
        if self.units:
            yield Title("What changed from A to B", ", cycles more (+) or fewer (-)")
            columns = ("unit", "end", *(cause.label for cause in COMPARED), "wired at")
            yield Rows(columns, [_row(unit) for unit in self.units], shown)


def diff_of(a: RecordedRun, b: RecordedRun) -> TraceDiff:
    return TraceDiff(
        names=(a.head.name, b.head.name),
        outcomes=(a.outcome, b.outcome),
        cycles=(a.cycles, b.cycles),
        settings=_settings(a.meta, b.meta),
        parting=_parting(a, b),
        units=_changes(Accounts(a), Accounts(b)),
    )


_Key: TypeAlias = tuple[str, int]


def _parting(a: RecordedRun, b: RecordedRun) -> Parting | None:
    found_a, found_b = _events(a), _events(b)
    keys: set[_Key] = found_a.keys() | found_b.keys()
    parted = (
        (_first_cycle(found_a.get(key), found_b.get(key)), *key)
        for key in keys
        if found_a.get(key) != found_b.get(key)
    )
    first = min(parted, default=None)
    if first is None:
        return None
    cycle, channel, element = first
    found = (events.get((channel, element)) for events in (found_a, found_b))
    return Parting(cycle, channel, element, *found)


def _events(trace: RecordedRun) -> dict[_Key, Stamps]:
    return {
        (name, element): Stamps(sent, taken) for name, element, sent, taken in trace.rows(_EVENTS)
    }


def _first_cycle(in_a: Stamps | None, in_b: Stamps | None) -> int:
    if in_a is None or in_b is None:
        only = in_a or in_b
        assert only is not None
        return only.sent_cycle
    parted = next((x, y) for x, y in zip(in_a, in_b, strict=True) if x != y)
    return min(cycle for cycle in parted if cycle is not None)


def _settings(a: dict[str, object], b: dict[str, object]) -> tuple[Setting, ...]:
    found = []
    for title in ("program", "mode", "parameters", "hardware"):
        left, right = _flat(title, a.get(title)), _flat(title, b.get(title))
        found += [
            Setting(key, left.get(key), right.get(key))
            for key in sorted(left.keys() | right.keys())
            if left.get(key) != right.get(key)
        ]
    return tuple(found)


def _flat(title: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {title: value}
    found: dict[str, object] = {}
    for key, each in value.items():
        found |= _flat(f"{title}.{key}", each)
    return found


def _changes(a: Accounts, b: Accounts) -> tuple[UnitChange, ...]:
    units = {each.name: each for each in a.units}
    changes = []
    for each in b.units:
        before = units.get(each.name)
        if before is None:
            continue
        change = UnitChange(
            each.name,
            each.file,
            each.line,
            a.timelines.finished[before.number],
            b.timelines.finished[each.number],
            b.timelines.final[each.number] - a.timelines.final[before.number],
            *(getattr(each, cause.column) - getattr(before, cause.column) for cause in COMPARED),
        )
        counts = (change.end_cycles, *(getattr(change, cause.column) for cause in COMPARED))
        if any(counts) or change.ended_in_a != change.ended_in_b:
            changes.append(change)
    changes.sort(key=lambda change: (bool(change.ended_in_b), -change.end_cycles, change.name))
    return tuple(changes)


def _stamps(stamps: Stamps | None) -> str:
    if stamps is None:
        return "it was not sent"
    taken = stamps.taken_cycle
    end = "still held" if taken is None else f"dequeued in cycle {taken:,}"
    return f"sent in cycle {stamps.sent_cycle:,}, {end}"


def _row(unit: UnitChange) -> tuple[str, ...]:
    ended = bool(unit.ended_in_a), bool(unit.ended_in_b)
    end = f"{unit.end_cycles:+,}" if all(ended) else _ENDS[ended]
    changes = (f"{getattr(unit, cause.column):+,}" for cause in COMPARED)
    return unit.name, end, *changes, Place(unit.file, unit.line).brief

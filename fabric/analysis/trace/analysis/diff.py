"""The first difference of two runs, and the units that got slower."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.parts import SHOWN as ROWS
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.place import Place
from fabric.messages.text import counted

COMPARED: Final = tuple(cause for cause in SHOWN if cause is not Cause.IDLE)
"""Causes whose cycles are compared. Idle is not: a unit that ends later is idle for less."""

_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}

_EVENTS = (
    "SELECT c.name, element, sent_cycle, taken_cycle FROM transfers JOIN channels c USING (channel)"
)


class Stamps(NamedTuple):
    """Cycles of an element's send and dequeue."""

    sent_cycle: int
    taken_cycle: int | None  # None if it was not dequeued


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
    """Changes of a unit from A to B, in cycles."""

    name: str
    file: str
    line: int
    ended_in_a: bool | None  # None if not recorded
    ended_in_b: bool | None
    end_cycles: int
    busy_cycles: int
    empty_cycles: int
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int


@dataclass(frozen=True, repr=False)
class TraceDiff(Result):
    """Two runs, A and B; units and channels are matched by name.

    ``units``: changed units of both runs, the most delayed end first. Units that did not end in B
    come before all others.
    """

    names: tuple[str, str]  # of the programs
    outcomes: tuple[str, str]
    cycles: tuple[int, int]
    settings: tuple[Setting, ...]  # settings that differ
    parting: Parting | None  # the first transfer that differs; None if all are equal
    units: tuple[UnitChange, ...] = field(repr=False)

    def sheet(self, shown: int = ROWS) -> Sheet:
        runs = zip("AB", self.names, self.outcomes, self.cycles, strict=True)
        for letter, name, outcome, cycles in runs:
            yield line(f"{letter}  {name}  {outcome}, {counted(cycles, 'cycle')}")
        for setting in self.settings:
            yield line(f"   {setting.name}: {setting.in_a} in A, {setting.in_b} in B")
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


def _parting(a: RecordedRun, b: RecordedRun) -> Parting | None:
    stamps_a, stamps_b = _stamps_of(a), _stamps_of(b)
    partings = [
        Parting(_first_cycle(in_a, in_b), *key, in_a, in_b)
        for key in stamps_a.keys() | stamps_b.keys()
        if (in_a := stamps_a.get(key)) != (in_b := stamps_b.get(key))
    ]
    return min(partings, key=lambda at: (at.cycle, at.channel, at.element), default=None)


def _stamps_of(trace: RecordedRun) -> dict[tuple[str, int], Stamps]:
    return {
        (name, element): Stamps(sent, taken) for name, element, sent, taken in trace.rows(_EVENTS)
    }


def _first_cycle(in_a: Stamps | None, in_b: Stamps | None) -> int:
    if in_a is None or in_b is None:
        only = in_a or in_b
        assert only is not None
        return only.sent_cycle
    different = next(cycles for cycles in zip(in_a, in_b, strict=True) if cycles[0] != cycles[1])
    return min(cycle for cycle in different if cycle is not None)


def _settings(a: dict[str, object], b: dict[str, object]) -> tuple[Setting, ...]:
    settings = []
    for title in ("program", "mode", "parameters", "hardware"):
        in_a, in_b = _flat(title, a.get(title)), _flat(title, b.get(title))
        settings += [
            Setting(name, in_a.get(name), in_b.get(name))
            for name in sorted(in_a.keys() | in_b.keys())
            if in_a.get(name) != in_b.get(name)
        ]
    return tuple(settings)


def _flat(title: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {title: value}
    flat: dict[str, object] = {}
    for key, part in value.items():
        flat |= _flat(f"{title}.{key}", part)
    return flat


def _changes(a: Accounts, b: Accounts) -> tuple[UnitChange, ...]:
    units = {unit.name: unit for unit in a.units}
    changes = []
    for unit in b.units:
        before = units.get(unit.name)
        if before is None:
            continue
        change = UnitChange(
            unit.name,
            unit.file,
            unit.line,
            a.timelines.finished[before.number],
            b.timelines.finished[unit.number],
            b.timelines.final[unit.number] - a.timelines.final[before.number],
            *(getattr(unit, cause.column) - getattr(before, cause.column) for cause in COMPARED),
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

"""``trace diff``: where two runs part, and which units got slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from rich.text import Text

from fabric.telling.causes import SHOWN, Cause
from fabric.terminal.tables import print_table, print_title
from fabric.trace.analysis.stalls import Accounts

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reading.reader import Trace

__all__ = ["first_difference", "print_diff"]

_COLUMNS: Final = tuple(cause for cause in SHOWN if cause is not Cause.IDLE)
_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}
"""Where a unit's operator ended in A and in B, if not in both."""
Stamps: TypeAlias = tuple[int, int | None]
"""When an element was sent, and when it was dequeued."""

Difference: TypeAlias = tuple[int, str, int, Stamps | None, Stamps | None]

_EVENTS = (
    "SELECT c.name, element, sent_cycle, taken_cycle FROM transfers JOIN channels c USING (channel)"
)


def print_diff(a: Trace, b: Trace, console: Console, shown: int) -> None:
    """Print what differs between two runs; units and channels are matched by name."""
    console.print(f"A  {a.meta.get('name')}  {a.outcome}, {a.cycles:,} cycles")
    console.print(f"B  {b.meta.get('name')}  {b.outcome}, {b.cycles:,} cycles")
    for line in _settings(a.meta, b.meta):
        console.print(Text(f"   {line}"), soft_wrap=True)
    console.print()
    parting = first_difference(a, b)
    if parting is None:
        console.print("Every transfer happened in the same cycles.")
    else:
        cycle, channel, element, in_a, in_b = parting
        console.print(
            Text(f"They part at cycle {cycle:,}: element {element:,} of {channel}"), soft_wrap=True
        )
        console.print(f"   in A {_stamps(in_a)}")
        console.print(f"   in B {_stamps(in_b)}")
    _print_units(Accounts(a), Accounts(b), console, shown)


def first_difference(a: Trace, b: Trace) -> Difference | None:
    """Return the earliest transfer that differs: cycle, channel, element, stamps in A and in B.

    Stamps are (sent, dequeued), or None where the run has no such transfer.
    """
    found = [_events(trace) for trace in (a, b)]
    best: Difference | None = None
    for key in found[0].keys() | found[1].keys():
        in_a, in_b = found[0].get(key), found[1].get(key)
        if in_a == in_b:
            continue
        cycle = _parting(in_a, in_b)
        if best is None or (cycle, *key) < best[:3]:
            best = (cycle, *key, in_a, in_b)
    return best


def _events(trace: Trace) -> dict[tuple[str, int], Stamps]:
    return {(name, element): (sent, taken) for name, element, sent, taken in trace.rows(_EVENTS)}


def _parting(in_a: Stamps | None, in_b: Stamps | None) -> int:
    """Return the first cycle in which one run did what the other did not."""
    if in_a is None or in_b is None:
        only = in_a or in_b
        assert only is not None
        return only[0]
    pairs = zip(in_a, in_b, strict=True)
    parted = next((x, y) for x, y in pairs if x != y)
    return min(cycle for cycle in parted if cycle is not None)


def _stamps(stamps: Stamps | None) -> str:
    if stamps is None:
        return "it was not sent"
    sent, taken = stamps
    end = "still held" if taken is None else f"dequeued in cycle {taken:,}"
    return f"sent in cycle {sent:,}, {end}"


def _settings(a: dict[str, object], b: dict[str, object]) -> list[str]:
    """Return the parameters and pieces of hardware that differ."""
    lines = []
    for title in ("program", "mode", "parameters", "hardware"):
        left, right = _flat(title, a.get(title)), _flat(title, b.get(title))
        lines += [
            f"{key}: {left.get(key)} in A, {right.get(key)} in B"
            for key in sorted(left.keys() | right.keys())
            if left.get(key) != right.get(key)
        ]
    return lines


def _flat(title: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        return {title: value}
    found: dict[str, object] = {}
    for key, each in value.items():
        found |= _flat(f"{title}.{key}", each)
    return found


def _print_units(a: Accounts, b: Accounts, console: Console, shown: int) -> None:
    """Print, for units of both runs, what changed, the most delayed end first.

    A unit that did not end in B is the most delayed of all.
    """
    units = {a.names.units[each.unit]: each for each in a.units}
    rows = []
    for each in b.units:
        name = b.names.units[each.unit]
        before = units.get(name)
        if before is None:
            continue
        changes = [getattr(each, column) - getattr(before, column) for column in _COLUMNS]
        delay = b.timelines.final[each.unit] - a.timelines.final[before.unit]
        ended = a.timelines.finished[before.unit], b.timelines.finished[each.unit]
        if delay or any(changes) or ended[0] != ended[1]:
            end = delay if all(ended) else _ENDS[bool(ended[0]), bool(ended[1])]
            place = b.names.places[each.unit]
            rows.append((bool(ended[1]), -delay, (name, end, *changes, place)))
    if not rows:
        return
    rows.sort(key=lambda each: (*each[:2], each[2][0]))
    print_title(console, "What changed from A to B", ", cycles more (+) or fewer (-)")
    columns = ("unit", "end", *(cause.label for cause in _COLUMNS), "wired at")
    signed = [
        tuple(f"{cell:+,}" if isinstance(cell, int) else cell for cell in row) for _, _, row in rows
    ]
    print_table(console, columns, signed, shown)

"""``trace diff``: where two runs part, and which units got slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.telling.place import Place
from fabric.telling.wording import counted
from fabric.terminal.tables import print_table, print_title
from fabric.trace.analysis.diff import COMPARED

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.analysis.diff import Stamps, TraceDiff, UnitChange

__all__ = ["print_diff"]

_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}
"""Where a unit's operator ended in A and in B, if not in both."""


def print_diff(diff: TraceDiff, console: Console, shown: int) -> None:
    """Print what differs between two runs, ``shown`` units at most."""
    runs = zip("AB", diff.names, diff.outcomes, diff.cycles, strict=True)
    for letter, name, outcome, cycles in runs:
        console.print(f"{letter}  {name}  {outcome}, {counted(cycles, 'cycle')}")
    for each in diff.settings:
        line = f"   {each.name}: {each.in_a} in A, {each.in_b} in B"
        console.print(Text(line), soft_wrap=True)
    console.print()
    parting = diff.parting
    if parting is None:
        console.print("Every transfer happened in the same cycles.")
    else:
        line = f"They part at cycle {parting.cycle:,}: element {parting.element:,} of "
        console.print(Text(line + parting.channel), soft_wrap=True)
        console.print(f"   in A {_stamps(parting.in_a)}")
        console.print(f"   in B {_stamps(parting.in_b)}")
    if diff.units:
        print_title(console, "What changed from A to B", ", cycles more (+) or fewer (-)")
        columns = ("unit", "end", *(cause.label for cause in COMPARED), "wired at")
        print_table(console, columns, [_row(unit) for unit in diff.units], shown)


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

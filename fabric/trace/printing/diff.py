"""``trace diff``: where two runs part, and which units got slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.telling.place import Place
from fabric.telling.sheet import SHOWN, Rows, Sheet, Title, line
from fabric.telling.wording import counted
from fabric.trace.analysis.diff import COMPARED

if TYPE_CHECKING:
    from fabric.trace.analysis.diff import Stamps, TraceDiff, UnitChange

__all__ = ["diff_sheet"]

_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}
"""Where a unit's operator ended in A and in B, if not in both."""


def diff_sheet(diff: TraceDiff, shown: int = SHOWN) -> Sheet:
    """Yield what differs between two runs, ``shown`` units at most."""
    runs = zip("AB", diff.names, diff.outcomes, diff.cycles, strict=True)
    for letter, name, outcome, cycles in runs:
        yield line(f"{letter}  {name}  {outcome}, {counted(cycles, 'cycle')}")
    for each in diff.settings:
        yield line(f"   {each.name}: {each.in_a} in A, {each.in_b} in B")
    yield line()
    parting = diff.parting
    if parting is None:
        yield line("Every transfer happened in the same cycles.")
    else:
        where = f"element {parting.element:,} of {parting.channel}"
        yield line(f"They part at cycle {parting.cycle:,}: {where}")
        yield line(f"   in A {_stamps(parting.in_a)}")
        yield line(f"   in B {_stamps(parting.in_b)}")
    if diff.units:
        yield Title("What changed from A to B", ", cycles more (+) or fewer (-)")
        columns = ("unit", "end", *(cause.label for cause in COMPARED), "wired at")
        yield Rows(columns, [_row(unit) for unit in diff.units], shown)


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

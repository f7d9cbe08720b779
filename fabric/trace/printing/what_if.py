"""``trace what-if``: what a run would have taken, how sure that is, and what would move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.telling.place import Place
from fabric.telling.wording import counted
from fabric.terminal.output import print_line
from fabric.terminal.tables import print_table, print_title
from fabric.trace.reading.wording import percent

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.analysis.what_if import BlockedUnit, ChannelWaits, WhatIf

__all__ = ["print_what_if"]

_ASKED_SHOWN: Final = 4
"""Channels of a pattern that are named."""


def print_what_if(found: WhatIf, console: Console, shown: int) -> None:
    """Print what would become of the run; ``shown`` rows of each table at most."""
    print_line(console, Text.assemble((found.name, "bold"), f"  {_asked(found)}"))
    console.print()
    print_line(console, Text(_verdict(found), "bold"))
    if found.released:
        _print_released(found, console, shown)
        return
    for each in found.loop:
        print_line(console, Text(f"  {_blocked(each)}"))
    _print_truth(found, console)
    _print_tables(found, console, shown)


def _asked(found: WhatIf) -> str:
    depths = [f"{option} {depth:,} deep" for option, depth in found.depths.items()]
    if len(depths) > _ASKED_SHOWN:
        depths[_ASKED_SHOWN:] = [f"{counted(len(depths) - _ASKED_SHOWN, 'more channel')}"]
    work = [f"{unit} works {factor:g} times as long" for unit, factor in found.work.items()]
    return "; ".join(depths + work) or "as it was run"


def _verdict(found: WhatIf) -> str:
    if found.released:
        first = found.released[0]
        more = len(found.released) - 1
        others = f", and {counted(more, 'more unit')} after it" if more else ""
        return f"It would have gone on: {first.name} in cycle {first.cycle:,}{others}."
    if found.stopped:
        waits = f"{counted(len(found.loop), 'unit')} would wait for each other for ever"
        return f"It would still deadlock: {waits if found.loop else 'no unit would go on'}."
    if found.cycles is None:
        return (
            f"It would deadlock: {counted(len(found.loop), 'unit')} would wait for each "
            f"other for ever."
        )
    more = found.cycles - found.cycles_before
    change = "as many" if not more else f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
    share = f" ({percent(abs(more), found.cycles_before)} %)" if more else ""
    return (
        f"{counted(found.cycles_before, 'cycle')} before, {found.cycles:,} after: {change}{share}."
    )


def _blocked(unit: BlockedUnit) -> str:
    if unit.full:
        return (
            f"{unit.name} waits for {unit.other}: {unit.channel} is full, "
            f"{counted(unit.depth, 'slot')}"
        )
    return f"{unit.name} waits for {unit.other}: {unit.channel} is empty"


def _print_released(found: WhatIf, console: Console, shown: int) -> None:
    """Print who would have gone on; what happens then is not in the record."""
    for unit in found.released[:shown]:
        way = "sends to" if unit.full else "receives from"
        print_line(console, Text(f"  cycle {unit.cycle:,}  {unit.name} {way} {unit.channel}"))
    if len(found.released) > shown:
        console.print(f"  and {len(found.released) - shown:,} more")
    if found.loop:
        count = counted(len(found.loop), "unit")
        print_line(console, Text(f"{count} would still wait for each other:"))
        for each in found.loop:
            print_line(console, Text(f"  {_blocked(each)}"))
    _print_truth(found, console)
    line = "The record ends there: a run with these depths says whether it completes."
    print_line(console, Text(line))


def _print_truth(found: WhatIf, console: Console) -> None:
    ends = "go on there" if found.released else "take as long" if found.cycles else "end so"
    if found.exact:
        console.print(f"Exact: a run would {ends}.")
        return
    console.print(f"Estimated: a run may not {ends}, since")
    for reason in found.reasons:
        print_line(console, Text(f"  {reason}"))
    if any(reason.startswith("the HBM ") for reason in found.reasons):
        print_line(console, Text("Waits for the HBM are as long here as they were in the run."))


def _print_tables(found: WhatIf, console: Console, shown: int) -> None:
    if found.units:
        print_title(console, "Units that would end in another cycle")
        rows = [
            (
                unit.name,
                unit.before_cycle,
                unit.after_cycle,
                f"{unit.after_cycle - unit.before_cycle:+,}",
                Place(unit.file, unit.line).brief,
            )
            for unit in found.units
        ]
        titles = ("unit", "end before", "end after", "change", "wired at")
        print_table(console, titles, rows, shown, spare=("wired at",))
    if found.channels:
        print_title(console, "Channels", ", cycles that units would wait for them")
        waits = [
            (
                each.name,
                _depth(each),
                each.empty_before_cycles,
                each.empty_after_cycles,
                each.full_before_cycles,
                each.full_after_cycles,
            )
            for each in found.channels
        ]
        columns = ("channel", "depth", "empty before", "empty after", "full before", "full after")
        spare = ("depth", "full before", "empty before")
        print_table(console, columns, waits, shown, spare=spare)


def _depth(waits: ChannelWaits) -> str:
    if waits.depth_before == waits.depth_after:
        return f"{waits.depth_before:,}"
    return f"{waits.depth_before:,} to {waits.depth_after:,}"

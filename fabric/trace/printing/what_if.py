"""``trace what-if``: what a run would have taken, how sure that is, and what would move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fabric.telling.place import Place
from fabric.telling.sheet import SHOWN, Rows, Sheet, Title, line
from fabric.telling.wording import counted
from fabric.trace.reading.wording import percent

if TYPE_CHECKING:
    from fabric.trace.analysis.what_if import BlockedUnit, ChannelWaits, WhatIf

__all__ = ["what_if_sheet"]

_ASKED_SHOWN: Final = 4
"""Channels of a pattern that are named."""


def what_if_sheet(found: WhatIf, shown: int = SHOWN) -> Sheet:
    """Yield what would become of the run; ``shown`` rows of each table at most."""
    yield line((found.name, "bold"), f"  {_asked(found)}")
    yield line()
    yield line((_verdict(found), "bold"))
    if found.released:
        yield from _released(found, shown)
        return
    for each in found.loop:
        yield line(f"  {_blocked(each)}")
    yield from _truth(found)
    yield from _tables(found, shown)


def _asked(found: WhatIf) -> str:
    depths = [f"{option} {depth:,} deep" for option, depth in found.depths.items()]
    if len(depths) > _ASKED_SHOWN:
        depths[_ASKED_SHOWN:] = [f"{counted(len(depths) - _ASKED_SHOWN, 'more channel')}"]
    work = [f"{unit} works {factor:g} times as long" for unit, factor in found.work.items()]
    links = [] if found.links == 1 else [_links(found.links)]
    return "; ".join(depths + work + links) or "as it was run"


def _links(factor: float) -> str:
    if math.isinf(factor):
        return "links of the network have no limit"
    return f"links of the network carry {factor:g} times as much"


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


def _released(found: WhatIf, shown: int) -> Sheet:
    """Yield who would have gone on; what happens then is not in the record."""
    for unit in found.released[:shown]:
        way = "sends to" if unit.full else "receives from"
        yield line(f"  cycle {unit.cycle:,}  {unit.name} {way} {unit.channel}")
    if len(found.released) > shown:
        yield line(f"  and {len(found.released) - shown:,} more")
    if found.loop:
        count = counted(len(found.loop), "unit")
        yield line(f"{count} would still wait for each other:")
        for each in found.loop:
            yield line(f"  {_blocked(each)}")
    yield from _truth(found)
    yield line("The record ends there: a run with these depths says whether it completes.")


def _truth(found: WhatIf) -> Sheet:
    ends = "go on there" if found.released else "take as long" if found.cycles else "end so"
    if found.exact:
        yield line(f"Exact: a run would {ends}.")
        return
    yield line(f"Estimated: a run may not {ends}, since")
    for reason in found.reasons:
        yield line(f"  {reason}")
    if any(reason.startswith("the HBM ") for reason in found.reasons):
        yield line("Waits for the HBM are as long here as they were in the run.")


def _tables(found: WhatIf, shown: int) -> Sheet:
    if found.units:
        yield Title("Units that would end in another cycle")
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
        yield Rows(titles, rows, shown)
    if found.channels:
        yield Title("Channels", ", cycles that units would wait for them")
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
        yield Rows(columns, waits, shown)


def _depth(waits: ChannelWaits) -> str:
    if waits.depth_before == waits.depth_after:
        return f"{waits.depth_before:,}"
    return f"{waits.depth_before:,} to {waits.depth_after:,}"

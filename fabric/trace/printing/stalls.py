"""``trace stalls``: where the cycles went, for whom units waited, the critical path, a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.telling.causes import SHOWN, Cause
from fabric.telling.families import absent_line
from fabric.telling.place import Place
from fabric.telling.sheet import SHOWN as ROWS
from fabric.telling.sheet import Rows, Sheet, Title, line
from fabric.telling.wording import counted
from fabric.trace.analysis.gains import by_change
from fabric.trace.reading.wording import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fabric.trace.analysis.gains import Gain
    from fabric.trace.analysis.path import CriticalPath
    from fabric.trace.analysis.slow_memory import SlowMemory
    from fabric.trace.analysis.stalled import ChargedRoot, StalledUnit, Stalls

__all__ = ["path_sheet", "stalls_sheet"]

_WHERE: Final = "Where the cycles went"

_LINKS: Final = "for links"
"""Beside what a unit waited for elements: shared links of a network held them up."""


def stalls_sheet(stalls: Stalls, shown: int = ROWS, *, unfold: bool = False) -> Sheet:
    """Yield the tables, the critical path and the verdict; ``shown`` rows of each at most.

    A row is a family of units; with ``unfold`` it is a unit.
    """
    yield from _stages(stalls, shown)
    unfold = unfold or all(len(family.units) == 1 for family in stalls.folded.families)
    if unfold:
        yield from _units(stalls, shown)
    else:
        yield from _families(stalls, shown)
    accounts = stalls if unfold else stalls.folded
    yield from _roots(accounts.roots, stalls.stalled_cycles, shown)
    yield from path_sheet(accounts.critical_path, shown)
    if stalls.hbm is not None:
        yield from _memory(stalls.hbm, shown)
    if stalls.gains:
        yield from _gains(stalls.gains, stalls.cycles, shown)
    yield line()
    yield line((stalls.verdict, "bold"))


def _stages(stalls: Stalls, shown: int) -> Sheet:
    """Yield what a stage has to do with the run's time, beside its traffic and its memory."""
    rows = [
        (
            stage.name,
            stage.units,
            percent(stage.path_cycles, stalls.cycles),
            None
            if stage.headroom_cycles is None
            else percent(stage.headroom_cycles, stalls.cycles),
            stage.off_chip_bytes,
            stage.on_chip_bytes,
            Place(stage.file, stage.line).brief,
        )
        for stage in stalls.folded.stages
    ]
    note = ", by their share of the critical path; headroom: saved if the stage took no time"
    yield Title("Stages", note)
    titles = ("stage", "units", "path, %", "headroom, %", "off-chip bytes", "on-chip bytes")
    yield Rows((*titles, "wired at"), rows, shown)


def _units(stalls: Stalls, shown: int) -> Sheet:
    columns = _columns(stalls.units)
    rows = [
        (
            unit.name,
            *(getattr(unit, column) for column in columns.values()),
            "" if unit.mostly is None else str(unit.mostly),
            Place(unit.file, unit.line).brief,
        )
        for unit in stalls.units
    ]
    yield Title(_WHERE, _note(stalls.cycles, columns))
    titles = ("unit", *columns, "mostly", "wired at")
    yield Rows(titles, rows, shown)


def _families(stalls: Stalls, shown: int) -> Sheet:
    """Yield a row a family: its median unit, and how far the others are from it."""
    families = stalls.folded.families
    medians = [family.spread.median for family in families]
    columns = _columns(medians)
    rows = []
    for family, median in zip(families, medians, strict=True):
        least, _, most = (each.stalled_cycles for each in family.spread)
        many = len(family.units) > 1
        rows.append(
            (
                family.name,
                len(family.units),
                *(getattr(median, column) for column in columns.values()),
                least if many else None,
                most if many else None,
                family.mostly,
                Place(median.file, median.line).brief,
            )
        )
    of_family = ": that of the median unit of a family, by its stalled cycles"
    note = _note(stalls.cycles, columns, of_family)
    yield Title(_WHERE, note)
    titles = (
        "unit",
        "units",
        *columns,
        "least stalled",
        "most stalled",
        "mostly",
        "wired at",
    )
    yield Rows(titles, rows, shown)
    absent = stalls.folded.absent
    if absent:
        yield line(absent_line(absent))


def _columns(units: Iterable[StalledUnit]) -> dict[str, str]:
    """Return the names of columns by their title: of what any of ``units`` has cycles of."""
    seen = list(units)
    columns: dict[str, str] = {}
    for cause in SHOWN:
        columns[cause.label] = cause.column
        if cause is Cause.EMPTY:
            columns[_LINKS] = "links_cycles"
    return {
        title: column
        for title, column in columns.items()
        if any(getattr(unit, column) for unit in seen)
    }


def _note(cycles: int, columns: Iterable[str], of: str = "") -> str:
    """Return the note on what a row sums to, and what it is ``of``."""
    more = f"; {_LINKS} is part of {Cause.EMPTY.label}" if _LINKS in columns else ""
    return f", each row sums to {counted(cycles, 'cycle')}{of}{more}"


def _roots(roots: Iterable[ChargedRoot], stalled: int, shown: int) -> Sheet:
    rows = [
        (each.root.name, each.cycles, percent(each.cycles, stalled), each.units) for each in roots
    ]
    note = (
        f", {counted(stalled, 'stalled cycle')} of all units, each charged to the end of its chain"
    )
    yield Title("Whom they were waiting for", note)
    yield Rows(("root", "stalled cycles", "%", "units stalled"), rows, shown)


def _memory(slow: SlowMemory, shown: int) -> Sheet:
    rows = [
        (
            each.name,
            each.hbm_cycles,
            each.requests,
            f"{each.queued_cycles:,.1f}",
            f"{each.waiting_cycles:,.1f}",
            f"{each.serving_cycles:,.1f}",
            f"{each.conflict_percent:.1f}",
        )
        for each in slow.units
    ]
    note = ", cycles of a request on average: outside of the window, in it, and being served"
    yield Title("Why the HBM was slow", note)
    titles = ("unit", Cause.HBM.label, "requests", "outside", "in it", "served", "conflicts, %")
    yield Rows(titles, rows, shown)
    for sentence in slow.findings:
        yield line(sentence)


def _gains(gains: Sequence[Gain], cycles: int, shown: int) -> Sheet:
    """Yield what a person would change: the memory, then each family, then all channels."""
    rows = [
        (
            gain.change,
            gain.changed_cycles,
            percent(cycles - gain.changed_cycles, cycles),
            "estimated" if gain.estimated else "exact",
        )
        for gain in by_change(gains)
    ]
    yield Title("What would help", "; `trace what-if` answers more")
    yield Rows(("if", "cycles", "fewer, %", ""), rows, shown)


def path_sheet(path: CriticalPath, shown: int = ROWS) -> Sheet:
    """Yield what the path goes through in all, and stretch by stretch."""
    note = path.note and f", {path.note}"
    yield Title("Critical path", note)
    rows = [
        (each.root.name, each.cycles, percent(each.cycles, path.cycles)) for each in path.shares
    ]
    yield Rows(("through", "path cycles", "%"), rows, shown)
    yield Title("Critical path over time", note)
    stretches = [
        (each.start_cycle, each.end_cycle, f"{100 * each.share:.1f}", each.root.name)
        for each in path.phases
    ]
    columns = ("from", "to", "% of it", "mostly through")
    yield Rows(columns, stretches)

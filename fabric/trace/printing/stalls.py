"""``trace stalls``: where the cycles went, for whom units waited, the critical path, a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.telling.causes import SHOWN, Cause
from fabric.telling.families import absent_line
from fabric.telling.place import Place
from fabric.telling.wording import counted
from fabric.terminal.output import print_line
from fabric.terminal.tables import print_table, print_title
from fabric.trace.analysis.gains import by_change
from fabric.trace.reading.wording import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from fabric.trace.analysis.gains import Gain
    from fabric.trace.analysis.path import CriticalPath
    from fabric.trace.analysis.slow_memory import SlowMemory
    from fabric.trace.analysis.stalled import ChargedRoot, StalledUnit, Stalls

__all__ = ["print_stalls"]

_WHERE: Final = "Where the cycles went"


def print_stalls(stalls: Stalls, console: Console, shown: int, *, unfold: bool = False) -> None:
    """Print the tables, the critical path and the verdict; ``shown`` rows of each at most.

    A row is a family of units; with ``unfold`` it is a unit.
    """
    _print_stages(stalls, console, shown)
    unfold = unfold or all(len(family.units) == 1 for family in stalls.folded.families)
    if unfold:
        _print_units(stalls, console, shown)
    else:
        _print_families(stalls, console, shown)
    accounts = stalls if unfold else stalls.folded
    _print_roots(accounts.roots, stalls.stalled_cycles, console, shown)
    _print_path(accounts.critical_path, console, shown)
    if stalls.hbm is not None:
        _print_memory(stalls.hbm, console, shown)
    if stalls.gains:
        _print_gains(stalls.gains, stalls.cycles, console, shown)
    console.print()
    print_line(console, Text(stalls.verdict, "bold"))


def _print_stages(stalls: Stalls, console: Console, shown: int) -> None:
    """Print what a stage has to do with the run's time, beside its traffic and its memory."""
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
    print_title(console, "Stages", note)
    titles = ("stage", "units", "path, %", "headroom, %", "off-chip bytes", "on-chip bytes")
    spare = ("wired at", "units")
    print_table(console, (*titles, "wired at"), rows, shown, spare=spare)


def _print_units(stalls: Stalls, console: Console, shown: int) -> None:
    columns = _causes(stalls.units)
    rows = [
        (
            unit.name,
            *(getattr(unit, cause.column) for cause in columns),
            "" if unit.mostly is None else str(unit.mostly),
            Place(unit.file, unit.line).brief,
        )
        for unit in stalls.units
    ]
    print_title(console, _WHERE, f", each row sums to {counted(stalls.cycles, 'cycle')}")
    titles = ("unit", *(cause.label for cause in columns), "mostly", "wired at")
    idle = (Cause.IDLE.label,) if Cause.IDLE in columns else ()
    print_table(console, titles, rows, shown, spare=("wired at", "mostly", *idle))


def _print_families(stalls: Stalls, console: Console, shown: int) -> None:
    """Print a row a family: its median unit, and how far the others are from it."""
    families = stalls.folded.families
    medians = [family.spread.median for family in families]
    columns = _causes(medians)
    rows = []
    for family, median in zip(families, medians, strict=True):
        least, _, most = (each.stalled_cycles for each in family.spread)
        many = len(family.units) > 1
        rows.append(
            (
                family.name,
                len(family.units),
                *(getattr(median, cause.column) for cause in columns),
                least if many else None,
                most if many else None,
                family.mostly,
                Place(median.file, median.line).brief,
            )
        )
    note = f", each row sums to {counted(stalls.cycles, 'cycle')}"
    note += ": that of the median unit of a family, by its stalled cycles"
    print_title(console, _WHERE, note)
    titles = (
        "unit",
        "units",
        *(cause.label for cause in columns),
        "least-stalled",
        "most-stalled",
        "mostly",
        "wired at",
    )
    idle = (Cause.IDLE.label,) if Cause.IDLE in columns else ()
    spare = ("wired at", "mostly", *idle, "least-stalled", "most-stalled", "units")
    print_table(console, titles, rows, shown, spare=spare)
    absent = stalls.folded.absent
    if absent:
        print_line(console, Text(absent_line(absent)))


def _causes(units: Iterable[StalledUnit]) -> list[Cause]:
    """Return the causes that any of ``units`` has cycles of."""
    seen = list(units)
    return [cause for cause in SHOWN if any(getattr(unit, cause.column) for unit in seen)]


def _print_roots(roots: Iterable[ChargedRoot], stalled: int, console: Console, shown: int) -> None:
    rows = [
        (each.root.name, each.cycles, percent(each.cycles, stalled), each.units) for each in roots
    ]
    note = (
        f", {counted(stalled, 'stalled cycle')} of all units, each charged to the end of its chain"
    )
    print_title(console, "Whom they were waiting for", note)
    print_table(
        console,
        ("root", "stalled cycles", "%", "units stalled"),
        rows,
        shown,
        spare=(),
    )


def _print_memory(slow: SlowMemory, console: Console, shown: int) -> None:
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
    print_title(console, "Why the HBM was slow", note)
    titles = ("unit", Cause.HBM.label, "requests", "outside", "in it", "served", "conflicts, %")
    print_table(console, titles, rows, shown, spare=("requests", Cause.HBM.label))
    for sentence in slow.findings:
        print_line(console, Text(sentence))


def _print_gains(gains: Sequence[Gain], cycles: int, console: Console, shown: int) -> None:
    """Print what a person would change: the memory, then each family, then all channels."""
    rows = [
        (
            gain.change,
            gain.changed_cycles,
            percent(cycles - gain.changed_cycles, cycles),
            "estimated" if gain.estimated else "exact",
        )
        for gain in by_change(gains)
    ]
    print_title(console, "What would help", "; `trace what-if` answers more")
    print_table(console, ("if", "cycles", "fewer, %", ""), rows, shown, spare=())


def _print_path(path: CriticalPath, console: Console, shown: int) -> None:
    note = path.note and f", {path.note}"
    print_title(console, "Critical path", note)
    rows = [
        (each.root.name, each.cycles, percent(each.cycles, path.cycles)) for each in path.shares
    ]
    print_table(console, ("through", "path cycles", "%"), rows, shown, spare=())
    print_title(console, "Critical path over time", note)
    stretches = [
        (each.start_cycle, each.end_cycle, f"{100 * each.share:.1f}", each.root.name)
        for each in path.phases
    ]
    columns = ("from", "to", "% of it", "mostly through")
    print_table(console, columns, stretches, len(stretches), spare=())

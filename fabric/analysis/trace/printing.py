"""Sheets for the results of ``trace``: tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.deadlock.text import deadlock_sheet
from fabric.analysis.trace.reading.wording import percent
from fabric.display.parts import SHOWN as ROWS
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.place import Place
from fabric.messages.text import absent_line, counted, families, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.analysis.deadlock.document import DeadlockReport
    from fabric.analysis.trace.analysis.critical import CriticalPath
    from fabric.analysis.trace.analysis.diff import Stamps, TraceDiff, UnitChange
    from fabric.analysis.trace.analysis.moment import Moment
    from fabric.analysis.trace.analysis.stalled import ChargedRoot, SlowMemory, StalledUnit, Stalls
    from fabric.analysis.trace.analysis.summary import TraceSummary, UnitLeft
    from fabric.analysis.trace.analysis.what_if import BlockedUnit, ChannelWaits, Gain, WhatIf
    from fabric.analysis.trace.reading.table import Table
    from fabric.timing.state.run_state import ChannelState

_SHOWN: Final = 20

_WHERE: Final = "Where the cycles went"

_LINKS: Final = "for links"

_ENDS: Final = {(True, False): "not in B", (False, True): "not in A", (False, False): "in neither"}

_DEPTHS_SHOWN: Final = 4


def summary_sheet(summary: TraceSummary, *, unfold: bool = False) -> Sheet:
    """Yield the end of the run, the recorded amounts, and the units that still wait.

    Units of a family that wait for channels of one family share a row, except with ``unfold``.
    """
    given = ", ".join(f"{name}={value}" for name, value in summary.parameters.items())
    yield line((summary.name, "bold"), f"  {visible(summary.program)}")
    if given:
        yield line(visible(given))
    yield line(f"{summary.outcome} in {summary.mode} mode, {counted(summary.cycles, 'cycle')}")
    if summary.window is not None:
        first, last = summary.window
        yield line(f"only cycles {first:,} to {last:,} were traced")
    if summary.nodes is not None:
        yield line(f"only channels of units {summary.nodes} were traced")
    counts = (
        ("units", summary.units),
        ("channels", summary.channels),
        ("transfers", summary.transfers),
        ("elements still held", summary.held_elements),
        ("bursts", summary.bursts),
        ("bytes of the HBM", summary.hbm_bytes),
        ("waits", summary.waits),
    )
    yield Title("Recorded")
    yield Rows(("what", "count"), counts)
    waits = [
        _Left(unit, channel) for unit in summary.not_ended for channel in unit.channels or ("",)
    ]
    if not waits:
        return
    yield Title("Not ended")
    if unfold:
        rows = [
            (left.unit.name, left.awaits, left.channel, left.unit.since_cycle, left.wired)
            for left in waits
        ]
        yield Rows(("unit", "waits for", "channel", "since", "wired at"), rows, _SHOWN)
        return
    groups = families(
        waits,
        lambda left: f"{left.unit.name} {left.channel}",
        lambda left: (left.awaits, left.wired),
    )
    folded = []
    for title, members in groups:
        name, _, channel = title.partition(" ")
        since = [left.unit.since_cycle for left in members if left.unit.since_cycle is not None]
        ends = (min(since), max(since)) if since else (None, None)
        one = members[0]
        folded.append((name, len(members), one.awaits, channel, *ends, one.wired))
    columns = ("unit", "units", "waits for", "channel", "since", "last since", "wired at")
    yield Rows(columns, folded, _SHOWN)


class _Left(NamedTuple):
    unit: UnitLeft
    channel: str

    @property
    def awaits(self) -> str | None:
        return self.unit.waits_for and self.unit.waits_for.awaits

    @property
    def wired(self) -> str:
        return f"{self.unit.file}:{self.unit.line}"


def stalls_sheet(stalls: Stalls, shown: int = ROWS, *, unfold: bool = False) -> Sheet:
    """Yield the tables, the critical path and the verdict; at most ``shown`` rows of each.

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
    """Yield a row for each family: its median unit, and the spread of the units."""
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
    of_family = ", for the median unit of each family by stalled cycles"
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
    more = f"; {_LINKS} is part of {Cause.EMPTY.label}" if _LINKS in columns else ""
    return f", each row sums to {counted(cycles, 'cycle')}{of}{more}"


def _roots(roots: Iterable[ChargedRoot], stalled: int, shown: int) -> Sheet:
    rows = [
        (each.root.name, each.cycles, percent(each.cycles, stalled), each.units) for each in roots
    ]
    note = (
        f", {counted(stalled, 'stalled cycle')} of all units, each charged to the end of its chain"
    )
    yield Title("Roots of the waits", note)
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
    # Imported here: the prompt uses this module without a database.
    from fabric.analysis.trace.analysis.what_if import by_change

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
    """Yield the path's shares by root, and its stretches."""
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


def moment_sheet(moment: Moment) -> Sheet:
    """Yield the state of units, and the contents of channels."""
    yield Title(f"Cycle {moment.cycle:,}")
    rows = [
        (
            unit.name,
            unit.since_cycle,
            unit.until_cycle,
            Place(unit.file, unit.line).brief,
            unit.doing,
        )
        for unit in moment.units
    ]
    yield Rows(("unit", "since", "until", "wired at", "is"), rows)
    yield Title("Channels")
    yield channels_table(moment.channels)


def channels_table(channels: Sequence[ChannelState], shown: int | None = None) -> Rows:
    """Return the held slots and the passed values of at most ``shown`` channels.

    A bare stop takes a slot and is not a value.
    """
    rows = [
        (visible(each.name), f"{each.held}/{each.depth}", each.sent, each.taken, each.bare_stops)
        for each in channels
    ]
    return Rows(("channel", "held", "sent", "taken", "bare stops"), rows, shown)


def diff_sheet(diff: TraceDiff, shown: int = ROWS) -> Sheet:
    """Yield what differs between two runs, ``shown`` units at most."""
    from fabric.analysis.trace.analysis.diff import COMPARED

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
    from fabric.analysis.trace.analysis.diff import COMPARED

    ended = bool(unit.ended_in_a), bool(unit.ended_in_b)
    end = f"{unit.end_cycles:+,}" if all(ended) else _ENDS[ended]
    changes = (f"{getattr(unit, cause.column):+,}" for cause in COMPARED)
    return unit.name, end, *changes, Place(unit.file, unit.line).brief


def what_if_sheet(result: WhatIf, shown: int = ROWS) -> Sheet:
    """Yield the changed cycles and waits; ``shown`` rows of each table at most."""
    yield line((result.name, "bold"), f"  {_changes(result)}")
    yield line()
    yield line((_verdict(result), "bold"))
    if result.released:
        yield from _released(result, shown)
        return
    for each in result.loop:
        yield line(f"  {_blocked(each)}")
    yield from _exactness(result)
    yield from _tables(result, shown)


def _changes(result: WhatIf) -> str:
    depths = [f"{option} {depth:,} deep" for option, depth in result.depths.items()]
    if len(depths) > _DEPTHS_SHOWN:
        depths[_DEPTHS_SHOWN:] = [f"{counted(len(depths) - _DEPTHS_SHOWN, 'more channel')}"]
    work = [f"{unit} works {factor:g} times as long" for unit, factor in result.work.items()]
    links = [] if result.links == 1 else [_links(result.links)]
    return "; ".join(depths + work + links) or "as it was run"


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
    if result.stopped:
        waits = f"{counted(len(result.loop), 'unit')} would wait for each other for ever"
        return f"It would still deadlock: {waits if result.loop else 'no unit would continue'}."
    if result.cycles is None:
        return (
            f"It would deadlock: {counted(len(result.loop), 'unit')} would wait for each "
            f"other for ever."
        )
    before = result.cycles_before
    more = result.cycles - before
    change = "as many" if not more else f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
    share = f" ({percent(abs(more), before)} %)" if more else ""
    return f"{counted(before, 'cycle')} before, {result.cycles:,} after: {change}{share}."


def _blocked(unit: BlockedUnit) -> str:
    if unit.full:
        return (
            f"{unit.name} waits for {unit.other}: {unit.channel} is full, "
            f"{counted(unit.depth, 'slot')}"
        )
    return f"{unit.name} waits for {unit.other}: {unit.channel} is empty"


def _released(result: WhatIf, shown: int) -> Sheet:
    for unit in result.released[:shown]:
        way = "sends to" if unit.full else "receives from"
        yield line(f"  cycle {unit.cycle:,}  {unit.name} {way} {unit.channel}")
    if len(result.released) > shown:
        yield line(f"  and {len(result.released) - shown:,} more")
    if result.loop:
        count = counted(len(result.loop), "unit")
        yield line(f"{count} would still wait for each other:")
        for each in result.loop:
            yield line(f"  {_blocked(each)}")
    yield from _exactness(result)
    yield line("The record ends there: run it with these depths to see if it completes.")


def _exactness(result: WhatIf) -> Sheet:
    ends = "continue there" if result.released else "take as long" if result.cycles else "end so"
    if result.exact:
        yield line(f"Exact: a run would {ends}.")
        return
    yield line(f"Estimated: a run may not {ends}, since")
    for reason in result.reasons:
        yield line(f"  {reason}")
    if any(reason.startswith("the HBM ") for reason in result.reasons):
        yield line("Waits for the HBM are as long here as they were in the run.")


def _tables(result: WhatIf, shown: int) -> Sheet:
    if result.units:
        yield Title("Units that would end in another cycle")
        rows = [
            (
                unit.name,
                unit.before_cycle,
                unit.after_cycle,
                f"{unit.after_cycle - unit.before_cycle:+,}",
                Place(unit.file, unit.line).brief,
            )
            for unit in result.units
        ]
        titles = ("unit", "end before", "end after", "change", "wired at")
        yield Rows(titles, rows, shown)
    if result.channels:
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
            for each in result.channels
        ]
        columns = ("channel", "depth", "empty before", "empty after", "full before", "full after")
        yield Rows(columns, waits, shown)


def _depth(waits: ChannelWaits) -> str:
    if waits.depth_before == waits.depth_after:
        return f"{waits.depth_before:,}"
    return f"{waits.depth_before:,} to {waits.depth_after:,}"


def stuck_sheet(report: DeadlockReport | None, summary: TraceSummary) -> Sheet:
    """Yield the loops of ``report``, or the state in ``summary`` of a run without loops."""
    if report is not None:
        yield from deadlock_sheet(report)
        return
    if not summary.has_state:
        yield line("The trace has no record of the last waits.")
        return
    finished = summary.units - len(summary.not_ended)
    waiting = sum(unit.waits_for is not None for unit in summary.not_ended)
    yield line(f"No unit waits for ever: {summary.status} at cycle {summary.cycles:,}.")
    yield line(
        f"{finished:,} of {counted(summary.units, 'unit')} had ended, {waiting:,} waited for "
        f"others."
    )


def answer_sheet(answer: Table) -> Sheet:
    """Yield all rows of ``answer``."""
    yield Rows(answer.columns, answer.rows())

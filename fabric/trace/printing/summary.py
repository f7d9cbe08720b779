"""``trace summary``: what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.telling.families import families
from fabric.telling.sheet import Rows, Sheet, Title, line
from fabric.telling.wording import counted, visible

if TYPE_CHECKING:
    from fabric.trace.analysis.summary import TraceSummary, UnitLeft

__all__ = ["summary_sheet"]

_SHOWN: Final = 20


def summary_sheet(summary: TraceSummary, *, unfold: bool = False) -> Sheet:
    """Yield how the run ended, how much was recorded, and who still waits.

    Units of a family that wait for channels of one family are a row; with ``unfold`` none are.
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
    found = families(
        waits,
        lambda left: f"{left.unit.name} {left.channel}",
        lambda left: (left.awaits, left.wired),
    )
    folded = []
    for title, members in found:
        name, _, channel = title.partition(" ")
        since = [left.unit.since_cycle for left in members if left.unit.since_cycle is not None]
        ends = (min(since), max(since)) if since else (None, None)
        one = members[0]
        folded.append((name, len(members), one.awaits, channel, *ends, one.wired))
    columns = ("unit", "units", "waits for", "channel", "since", "last since", "wired at")
    yield Rows(columns, folded, _SHOWN)


class _Left(NamedTuple):
    """A unit that had not ended, and a channel that it waited for; empty for none."""

    unit: UnitLeft
    channel: str

    @property
    def awaits(self) -> str | None:
        return self.unit.waits_for and self.unit.waits_for.awaits

    @property
    def wired(self) -> str:
        return f"{self.unit.file}:{self.unit.line}"

"""``trace summary``: what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from fabric.telling.families import families
from fabric.telling.wording import counted, visible
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.analysis.summary import TraceSummary, UnitLeft

__all__ = ["print_summary"]

_SHOWN: Final = 20


def print_summary(summary: TraceSummary, console: Console, *, unfold: bool = False) -> None:
    """Print how the run ended, how much was recorded, and who still waits.

    Units of a family that wait for channels of one family are a row; with ``unfold`` none are.
    """
    given = ", ".join(f"{name}={value}" for name, value in summary.parameters.items())
    console.print(Text.assemble((summary.name, "bold"), f"  {visible(summary.program)}"))
    if given:
        console.print(Text(visible(given)), soft_wrap=True)
    console.print(f"{summary.outcome} in {summary.mode} mode, {counted(summary.cycles, 'cycle')}")
    if summary.window is not None:
        first, last = summary.window
        console.print(f"only cycles {first:,} to {last:,} were traced")
    if summary.nodes is not None:
        console.print(f"only channels of units {summary.nodes} were traced")
    counts = (
        ("units", summary.units),
        ("channels", summary.channels),
        ("transfers", summary.transfers),
        ("elements still held", summary.held_elements),
        ("bursts", summary.bursts),
        ("bytes of the HBM", summary.hbm_bytes),
        ("waits", summary.waits),
    )
    print_title(console, "Recorded")
    print_table(console, ("what", "count"), counts, len(counts))
    waits = [
        _Left(unit, channel) for unit in summary.not_ended for channel in unit.channels or ("",)
    ]
    if not waits:
        return
    print_title(console, "Not ended")
    if unfold:
        rows = [
            (left.unit.name, left.awaits, left.channel, left.unit.since_cycle, left.wired)
            for left in waits
        ]
        print_table(console, ("unit", "waits for", "channel", "since", "wired at"), rows, _SHOWN)
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
    print_table(console, columns, folded, _SHOWN, spare=("last since", "wired at"))


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

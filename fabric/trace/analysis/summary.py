"""``trace summary``: what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fabric.telling.causes import Operation
from fabric.telling.wording import visible
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reading.reader import Trace

__all__ = ["print_summary"]

_WAITS_SHOWN = 20


def print_summary(trace: Trace, console: Console) -> None:
    """Print how the run ended, how much was recorded, and who still waits."""
    meta = trace.meta
    given = ", ".join(f"{name}={value}" for name, value in meta.get("parameters", {}).items())
    program = visible(str(meta.get("program")))
    console.print(Text.assemble((str(meta.get("name")), "bold"), f"  {program}"))
    if given:
        console.print(Text(visible(given)), soft_wrap=True)
    console.print(f"{trace.outcome} in {meta.get('mode')} mode, {trace.cycles:,} cycles")
    if meta.get("window") is not None:
        first, last = meta["window"]
        console.print(f"only cycles {first:,} to {last:,} were traced")
    if meta.get("nodes") is not None:
        console.print(f"only channels of units {meta['nodes']} were traced")
    (counts,) = trace.rows(
        "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM channels), "
        "(SELECT count(taken_cycle) FROM transfers), "
        "(SELECT count(*) - count(taken_cycle) FROM transfers), "
        "(SELECT count(*) FROM bursts), (SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts), "
        "(SELECT count(*) FROM waits)"
    )
    names = ("units", "channels", "transfers", "elements still held", "bursts",
             "bytes of the HBM", "waits")  # fmt: skip
    print_title(console, "Recorded")
    print_table(console, ("what", "count"), list(zip(names, counts, strict=True)), len(names))
    waiting = trace.rows(
        "SELECT u.name, s.waits_for, c.name, s.since_cycle, u.file || ':' || u.line "
        "FROM states s JOIN units u USING (unit) LEFT JOIN waiting w USING (unit) "
        "LEFT JOIN channels c USING (channel) WHERE NOT s.finished ORDER BY unit, channel"
    )
    if waiting:
        print_title(console, "Not ended")
        columns = ("unit", "waits for", "channel", "since", "wired at")
        rows = [
            (unit, operation and Operation(operation).awaits, *rest)
            for unit, operation, *rest in waiting
        ]
        print_table(console, columns, rows, _WAITS_SHOWN)

"""``trace``: look at the event trace of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.shell.commands.options import NamedPath, depth_option, factors
from fabric.shell.completing import runs
from fabric.shell.groups import Group
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.opened import Trace

__all__ = ["command"]

_RUN = click.argument("run", metavar="RUN", type=NamedPath(path_type=Path), shell_complete=runs)
_ROWS = click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Rows of each table at most.",
)


_UNFOLD = click.option(
    "--unfold",
    is_flag=True,
    help="A row for every unit or channel; by default those of a family share one.",
)


@click.group("trace", cls=Group)
def command() -> None:
    """Look at the event trace of RUN, a folder that `run --trace events` wrote."""


@command.command("summary")
@_RUN
@_UNFOLD
def summary(run: Path, unfold: bool) -> None:
    """Say what was recorded: how the run ended, its transfers, bursts and waits."""
    from fabric.trace.printing.summary import print_summary

    _show(run, lambda trace, console: print_summary(trace.summary(), console, unfold=unfold))


@command.command("stalls")
@_RUN
@_ROWS
@_UNFOLD
def stalls(run: Path, rows: int, unfold: bool) -> None:
    """Say where each unit's cycles went, whom it waited for, and what bounds the run."""
    from fabric.trace.printing.stalls import print_stalls

    _show(run, lambda trace, console: print_stalls(trace.stalls(), console, rows, unfold=unfold))


@command.command("deadlock")
@_RUN
def deadlock(run: Path) -> None:
    """Say which units could never go on, and why, even if the run was killed.

    If a run was repeated with deeper channels, the first run is explained.
    """
    from fabric.trace.printing.deadlock import print_deadlock

    _show(
        run,
        lambda trace, console: print_deadlock(trace.deadlock(), trace.summary(), console),
        first=True,
    )


@command.command("show")
@_RUN
@click.option("--at", "cycle", type=click.IntRange(min=0), required=True, help="The cycle.")
@click.option("--around", "node", metavar="NODE", help="Show only this unit and its neighbours.")
def show(run: Path, cycle: int, node: str | None) -> None:
    """Say what every unit was doing in one cycle."""
    from fabric.trace.printing.moment import print_moment

    def print_around(trace: Trace, console: Console) -> None:
        moment = trace.at(cycle)
        print_moment(moment if node is None else moment.around(node), console)

    _show(run, print_around)


@command.command("query")
@click.argument(
    "run", metavar="[RUN]", type=NamedPath(path_type=Path), required=False, shell_complete=runs
)
@click.argument("query", metavar="[QUERY]", required=False)
@click.option("--list", "listing", is_flag=True, help="List the ready queries and the tables.")
@_UNFOLD
def query(run: Path | None, query: str | None, listing: bool, unfold: bool) -> None:
    """Print the rows of QUERY, a ready query's name or SQL over the trace's tables.

    A ready query has a row for each family; SQL finds the families in columns of that name.
    """
    from fabric.terminal.output import print_text
    from fabric.trace.reading.queries import describe

    if listing:
        print_text("\n".join(describe()) + "\n")
        return
    if run is None or query is None:
        raise click.UsageError("Missing argument: RUN and QUERY, or --list.")
    from fabric.trace.printing.answers import print_answer

    text = query
    _show(run, lambda trace, console: print_answer(trace.query(text, fold=not unfold), console))


@command.command("diff")
@click.argument("run_a", metavar="RUN_A", type=NamedPath(path_type=Path), shell_complete=runs)
@click.argument("run_b", metavar="RUN_B", type=NamedPath(path_type=Path), shell_complete=runs)
@_ROWS
def diff(run_a: Path, run_b: Path, rows: int) -> None:
    """Say where two runs begin to differ, and which units got slower."""
    from fabric.trace.printing.diff import print_diff

    other = _opened(run_b)
    _show(run_a, lambda trace, console: print_diff(trace.diff(other), console, rows))


@command.command("what-if")
@_RUN
@depth_option(
    "The depth of a channel, named by its reader: OPERATOR.INPUT, or a pattern: 'load_*.0'.",
)
@click.option(
    "--work",
    metavar="UNIT=FACTORx",
    multiple=True,
    callback=factors,
    help="A unit works FACTOR times as long: 0.5x is half, 2x is double.",
)
@_ROWS
def what_if(run: Path, depths: dict[str, int], work: dict[str, float], rows: int) -> None:
    """Say what the run would have taken with other depths or work, without running it.

    What each unit did is timed again. This is exact if other depths change only when things happen.
    The hops stay those of the run.
    """
    from fabric.trace.printing.what_if import print_what_if

    _show(run, lambda trace, console: print_what_if(trace.what_if(depths, work), console, rows))


@command.command("export")
@_RUN
@click.option(
    "--perfetto", "forms", flag_value="perfetto", multiple=True, help="For ui.perfetto.dev."
)
@click.option(
    "--jsonl",
    "forms",
    flag_value="jsonl",
    multiple=True,
    help="One line per event, as structlog writes it.",
)
@click.option("--vcd", "forms", flag_value="vcd", multiple=True, help="For GTKWave and Surfer.")
@click.option("--csv", "forms", flag_value="csv", multiple=True, help="The transfers as a table.")
@click.option(
    "-o",
    "output",
    metavar="FILE",
    type=NamedPath(path_type=Path, dir_okay=False),
    required=True,
)
def export(run: Path, forms: tuple[str, ...], output: Path) -> None:
    """Write the trace in another form; 1 cycle is 1 ns in Perfetto and VCD."""
    if len(forms) != 1:
        found = " and ".join(f"--{form}" for form in forms) or "none"
        raise click.UsageError(f"Expected one of --perfetto, --jsonl, --vcd, --csv: found {found}.")
    from fabric.terminal.output import tell
    from fabric.trace.export.forms import export_trace

    count = export_trace(_opened(run), forms[0], output)
    tell(f"{counted(count, 'event')} in {output}")


@command.command("report")
@_RUN
@click.option(
    "-o",
    "output",
    metavar="FILE.html",
    type=NamedPath(path_type=Path, dir_okay=False),
    required=True,
)
def report(run: Path, output: Path) -> None:
    """Write one page that opens offline: graph, timeline, bandwidth, occupancy, stalls."""
    from fabric.terminal.output import tell
    from fabric.trace.pages.page import write_page

    write_page(_opened(run), output)
    tell(f"report in {output}")


def _show(run: Path, print_on: Callable[[Trace, Console], object], *, first: bool = False) -> None:
    from fabric.terminal.output import print_text, printed

    trace = _opened(run, first=first)
    lines = printed(lambda console: print_on(trace, console)).strip("\n").splitlines()
    print_text("".join(line.rstrip() + "\n" for line in lines))


def _opened(run: Path, *, first: bool = False) -> Trace:
    """Open the trace, the ``first`` where there are two; say on stderr what is missing in it."""
    from fabric.terminal.output import tell
    from fabric.trace.opened import open_trace

    trace = open_trace(run, first=first)
    for problem in trace.problems:
        tell(f"fabric: warning: {run}: {problem}")
    return trace

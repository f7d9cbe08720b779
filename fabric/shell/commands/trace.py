"""``trace``: analyse the event trace of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.display.parts import SHOWN, Sheet
from fabric.messages.text import counted
from fabric.shell.commands.options import (
    NamedPath,
    Whole,
    depth_option,
    factors,
    file_option,
    single_factor,
)
from fabric.shell.completing import runs
from fabric.shell.groups import Group

if TYPE_CHECKING:
    from fabric.analysis.trace.opened import Trace

_RUN = click.argument("run", metavar="RUN", type=NamedPath(path_type=Path), shell_complete=runs)
_ROWS = click.option(
    "--rows",
    metavar="N",
    type=Whole(min=1),
    default=SHOWN,
    show_default=True,
    help="Print at most this many rows of each table.",
)

_UNFOLD = click.option(
    "--unfold",
    is_flag=True,
    help="Print a row for every unit or channel; by default a family shares one.",
)


@click.group("trace", cls=Group)
def command() -> None:
    """Analyse the event trace of RUN, a folder that `run --trace events` wrote."""


@command.command("summary")
@_RUN
@_UNFOLD
def summary(run: Path, unfold: bool) -> None:
    """Print how the run ended, its transfers, bursts and waits."""
    _show(run, lambda trace: trace.summary().sheet(unfold=unfold))


@command.command("stalls")
@_RUN
@_ROWS
@_UNFOLD
def stalls(run: Path, rows: int, unfold: bool) -> None:
    """Print where each unit's cycles went, the units it waited for, and what bounds the run."""
    _show(run, lambda trace: trace.stalls().sheet(rows, unfold=unfold))


@command.command("deadlock")
@_RUN
def deadlock(run: Path) -> None:
    """Explain a deadlock, also of a run that was killed.

    If a run was repeated with deeper channels, the first run is explained.
    """

    def stuck(trace: Trace) -> Sheet:
        report = trace.deadlock()
        return trace.summary().waiting_sheet() if report is None else report.sheet()

    _show(run, stuck, first=True)


@command.command("show")
@_RUN
@click.option("--at", "cycle", metavar="CYCLE", type=Whole(min=0), required=True)
@click.option("--around", "node", metavar="NODE", help="Show only this unit and its neighbours.")
def show(run: Path, cycle: int, node: str | None) -> None:
    """Print the activity of every unit in one cycle."""

    def around(trace: Trace) -> Sheet:
        moment = trace.at(cycle)
        return (moment if node is None else moment.around(node)).sheet()

    _show(run, around)


@command.command("query")
@click.argument(
    "run", metavar="[RUN]", type=NamedPath(path_type=Path), required=False, shell_complete=runs
)
@click.argument("query", metavar="[QUERY]", required=False)
@click.option("--list", "listing", is_flag=True, help="List the ready queries and the tables.")
@_UNFOLD
def query(run: Path | None, query: str | None, listing: bool, unfold: bool) -> None:
    """Print the rows of QUERY: the name of a ready query, or SQL over the trace's tables.

    A ready query prints a row for each family. In SQL, the column `family` names the family.
    """
    from fabric.analysis.trace.reading.queries import describe
    from fabric.messages.output import PIPED_COLUMNS, print_text

    if listing:
        print_text("\n".join(describe()) + "\n")
        return
    if run is None or query is None:
        raise click.UsageError("Missing argument: RUN and QUERY, or --list.")
    text = query
    # A row in a pipe is one line, whatever COLUMNS is.
    columns = None if sys.stdout.isatty() else PIPED_COLUMNS
    _show(run, lambda trace: trace.query(text, fold=not unfold).sheet(None), columns=columns)


@command.command("diff")
@click.argument("run_a", metavar="RUN_A", type=NamedPath(path_type=Path), shell_complete=runs)
@click.argument("run_b", metavar="RUN_B", type=NamedPath(path_type=Path), shell_complete=runs)
@_ROWS
def diff(run_a: Path, run_b: Path, rows: int) -> None:
    """Print where two runs begin to differ, and the units that became slower."""
    other = _opened(run_b)
    _show(run_a, lambda trace: trace.diff(other).sheet(rows))


def _hbm_option(key: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        f"--hbm-{key}", metavar="FACTORx", default="1x", callback=single_factor, help=text
    )


@command.command("what-if")
@_RUN
@depth_option(
    "The depth of a channel, in slots. CHANNEL is its reader, OPERATOR.INPUT, or a "
    "pattern, as in 'load_*.0'."
)
@click.option(
    "--work",
    metavar="UNIT=FACTORx",
    multiple=True,
    callback=factors,
    help="Multiply the work of a unit and its waits for the HBM: 0.5x is half, 2x is double. UNIT "
    "may be a pattern, or a family as the tables name it: 'load_0..127'.",
)
@_hbm_option("bandwidth", "Multiply the bytes per cycle of the HBM.")
@_hbm_option("latency", "Multiply the cycles from a request to its answer.")
@_hbm_option("ports", "Multiply the requests per cycle that a unit hands over to the HBM.")
@click.option(
    "--links",
    metavar="FACTORx|unlimited",
    default="1x",
    callback=single_factor,
    help="Multiply the bytes per cycle of the network's links, or remove their limit.",
)
@_ROWS
def what_if(
    run: Path,
    depths: dict[str, int],
    work: dict[str, float],
    links: float,
    rows: int,
    **hbm: float,
) -> None:
    """Compute the run's cycles with other depths, work, links or HBM, without running it again.

    The recorded operations of each unit are timed again. This is exact if the changes affect only
    the timing of operations. The hops stay as they were.
    """
    _show(run, lambda trace: trace.what_if(depths, work, links, **hbm).sheet(rows))


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
@file_option("-o", "output", "FILE", "The file to write.", required=True)
def export(run: Path, forms: tuple[str, ...], output: Path) -> None:
    """Write the trace in another form; 1 cycle is 1 ns in Perfetto and VCD."""
    if len(forms) != 1:
        flags = " and ".join(f"--{form}" for form in forms) or "none"
        raise click.UsageError(f"Expected one of --perfetto, --jsonl, --vcd, --csv: found {flags}.")
    from fabric.analysis.trace.export import export_trace
    from fabric.messages.output import tell

    count = export_trace(_opened(run), forms[0], output)
    tell(f"{counted(count, 'event')} in {output}")


@command.command("report")
@_RUN
@file_option("-o", "output", "FILE.html", "The file to write.", required=True)
def report(run: Path, output: Path) -> None:
    """Write one page that opens offline: graph, timeline, bandwidth, occupancy, stalls."""
    from fabric.analysis.trace.pages.page import write_page
    from fabric.messages.output import tell

    write_page(_opened(run), output)
    tell(f"report in {output}")


def _show(
    run: Path,
    sheet_of: Callable[[Trace], Sheet],
    *,
    first: bool = False,
    columns: int | None = None,
) -> None:
    from fabric.display.terminal import printed_sheet
    from fabric.messages.output import print_text

    trace = _opened(run, first=first)
    print_text(printed_sheet(sheet_of(trace), columns=columns))


def _opened(run: Path, *, first: bool = False) -> Trace:
    from fabric.analysis.trace.opened import open_trace
    from fabric.messages.output import tell

    trace = open_trace(run, first=first)
    for problem in trace.problems:
        tell(f"fabric: warning: {run}: {problem}")
    return trace

"""``run``: wire a program, run it, print its report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT

# Any: arguments of `simulate`.
from typing import TYPE_CHECKING, Any, Literal

import click

from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.text import counted
from fabric.shell.commands.options import (
    NamedPath,
    file_option,
    json_option,
    pieces_option,
    program_options,
    run_options,
)
from fabric.timing.machine.terminations import was_terminated

if TYPE_CHECKING:
    from fabric.analysis.trace.selection import TraceOptions
    from fabric.graph.wiring.program import Program
    from fabric.messages.events import Log
    from fabric.messages.progress import Progress
    from fabric.runs.report import Report
    from fabric.shell.prompt import Break


@click.command("run")
@program_options
@run_options()
@click.option(
    "--trace",
    type=click.Choice(["counters", "events"]),
    default="counters",
    show_default=True,
    help="With events, record every transfer and wait in the run's folder, for `trace`.",
)
@click.option("--trace-window", metavar="C0:C1", help="Keep only the cycles from C0 to C1.")
@click.option(
    "--trace-nodes", metavar="GLOB", help="Keep only the channels of units with matching names."
)
@click.option(
    "--log-dir",
    metavar="DIR",
    type=NamedPath(path_type=Path),
    default=Path("logs"),
    show_default=True,
    help="The parent of the run's own folder.",
)
@click.option(
    "--log",
    "log_to",
    metavar="json|console|FILE",
    type=NamedPath(),
    help="Write the run's events to standard error, in JSON or for people, or to FILE in JSON.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="The least serious events that --log writes; by default info.",
)
@click.option(
    "--engine",
    type=click.Choice(["compiled", "tasks"]),
    default="compiled",
    show_default=True,
    help="Run operators in compiled code if possible, or each operator in a task.",
)
@file_option(
    "--save", "saved", "FILE.npz", "Write the outputs as numpy arrays; in functional mode."
)
@click.option(
    "--break-at",
    metavar="CYCLE|UNIT[.INPUT]:ELEMENT",
    help="Hold the run in a cycle, or when a unit takes element number ELEMENT from its first "
    "input or from INPUT, and show a prompt; `help` lists its commands.",
)
@pieces_option
@click.option(
    "--unfold",
    is_flag=True,
    help="Print a row for every unit; by default the units of a family share one.",
)
@json_option("Print the report as one JSON object.")
@click.pass_obj
def command(
    fields: dict[str, object],
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    options: dict[str, Any],
    trace: str,
    trace_window: str | None,
    trace_nodes: str | None,
    log_dir: Path,
    log_to: str | None,
    log_level: str | None,
    engine: Literal["compiled", "tasks"],
    saved: Path | None,
    break_at: str | None,
    pieces: tuple[int, int] | None,
    unfold: bool,
    as_json: bool,
) -> int:
    """Run PROGRAM.py, a file that defines build() -> Program, and print its report."""
    mode = "functional" if options["exact"] else options["mode"]
    fields.update(program=program, mode=mode)
    traced = _trace_options(trace, trace_window, trace_nodes)
    if log_to is None and log_level is not None:
        raise click.UsageError("--log-level needs --log.")

    place = None if break_at is None else _break(break_at, as_json=as_json)

    from fabric.graph.loading.program_file import load_on
    from fabric.graph.wiring.collector import imports_stay
    from fabric.messages.output import ExitStatus, program_prints, tell
    from fabric.runs.simulation import simulate
    from fabric.shell.library import lowered
    from fabric.timing.engine.machine_code import keeps_code

    imports_stay()
    progress = _progress()
    with program_prints(as_json=as_json), contextlib.ExitStack() as opened:
        loaded = load_on(hardware_file, program, parameters, fields)
        if pieces is not None:
            loaded = loaded._replace(program=lowered(loaded.program, *pieces))
        if saved is not None and (mode or loaded.program.mode) == "timing":
            raise ConfigurationError(
                f"--save {saved}: timing mode has no data: expected --mode functional"
            )
        settings: dict[str, Any] = options | {
            "log_dir": log_dir,
            "log": opened.enter_context(_log(log_to, log_level or "info")),
            "parameters": loaded.parameters,
            "program_file": program,
            "trace": traced,
            "notify": lambda text: tell(f"fabric: {text}"),
        }
        if place is None:
            report = simulate(loaded.program, progress=progress, engine=engine, **settings)
        else:
            held = _held(loaded.program, place, settings)
            if held is None:
                return ExitStatus.interrupted(SIGINT)
            report = held
    status = report.exit_status
    try:
        if as_json:
            _print_object(report)
        else:
            _print_report(report, timed=place is None, unfold=unfold)
    except OSError as error:
        tell(f"fabric: {error.filename}: {error.strerror}")
        status = status or ExitStatus.UNWRITTEN
    if saved is not None and not _save(report, saved):
        status = status or ExitStatus.UNWRITTEN
    kept = keeps_code()
    if kept is not None:
        sooner = "the next runs start seconds sooner"
        each_time = "each run compiles them again, unless XDG_CACHE_HOME is a folder it can write"
        tell(f"fabric: compiled its loops; {sooner if kept else each_time}")
    return status


def _break(text: str, *, as_json: bool) -> Break:
    if as_json:
        raise click.UsageError("--break-at asks at a prompt: expected it without --json.")
    from fabric.shell.prompt import Break

    try:
        return Break.parse(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--break-at: {error.message}") from None


def _held(program: Program, place: Break, settings: dict[str, Any]) -> Report | None:
    """Return the report of a run that is first held at ``place``; None if it was abandoned."""
    from fabric.messages.output import tell
    from fabric.runs.stepped import open_run
    from fabric.shell.prompt import Prompt

    with open_run(program, **settings) as run:
        reached = ""
        try:
            reached = place.go(run)
        except FabricError as error:
            if isinstance(error, ConfigurationError):
                raise ConfigurationError(f"--break-at: {error.message}") from None
            tell(f"fabric: {error.message}")
        except KeyboardInterrupt:
            if run.closed or was_terminated():
                raise
        prompt = Prompt(run)
        prompt.ask(reached)
        return None if prompt.left else run.finish()


@contextlib.contextmanager
def _log(to: str | None, level: str) -> Iterator[Log | None]:
    if to is None:
        yield None
        return
    from fabric.messages.events import line_logger
    from fabric.shell.events import standard_error_logger

    if to in ("json", "console"):
        yield standard_error_logger(level, as_json=to == "json")
    else:
        try:
            file = Path(to).open("w", encoding="utf-8")  # noqa: SIM115 - closed below
        except OSError as error:
            raise ConfigurationError(
                f"--log {to}: {error.strerror}: expected a file that can be written"
            ) from None
        try:
            yield line_logger(file, level=level)
        finally:
            # The error has been reported.
            with contextlib.suppress(OSError):
                file.close()


def _trace_options(level: str, window: str | None, nodes: str | None) -> TraceOptions | None:
    if level == "counters":
        if window is not None or nodes is not None:
            raise click.UsageError("--trace-window and --trace-nodes need --trace events.")
        return None
    from fabric.analysis.trace.selection import TraceOptions

    return TraceOptions.parse(window, nodes)


def _progress() -> Progress | None:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    from rich.console import Console

    from fabric.messages.progress import Progress

    return Progress(Console(stderr=True))


def _save(report: Report, saved: Path) -> bool:
    from fabric.messages.output import tell

    try:
        report.outputs.save(saved)
    except OSError as error:
        tell(f"fabric: {error.filename}: {error.strerror}")
    except ConfigurationError as error:
        tell(f"fabric: {error.message}")
    else:
        return True
    return False


def _print_object(report: Report) -> None:
    from fabric.messages.output import tell
    from fabric.shell.json_object import print_json

    print_json(report.as_json())
    for line in () if report.verification is None else report.verification.lines():
        tell(f"fabric: {line}")
    for warning in report.warnings:
        tell(f"fabric: warning: {warning}")


def _print_report(report: Report, *, timed: bool, unfold: bool) -> None:
    from fabric.display.terminal import printed_sheet
    from fabric.messages.output import print_text, tell

    print_text(printed_sheet(report.sheet(unfold=unfold)))
    if timed and report.wall_seconds is not None and report.cycles is not None:
        rate = report.cycles / max(report.wall_seconds, 1e-9)
        tell(f"{report.wall_seconds:.2f} s, {counted(round(rate), 'cycle')} per second")
    if report.log_dir is not None:
        tell(f"log in {report.log_dir}")

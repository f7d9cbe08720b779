"""``size``: find the depth of each channel."""

from __future__ import annotations

import sys
from pathlib import Path

# Any: fields of `SizeOptions`.
from typing import TYPE_CHECKING, Any

import click

from fabric.display.parts import SHOWN
from fabric.messages.errors import ConfigurationError
from fabric.shell.commands.options import (
    Whole,
    depth_option,
    file_option,
    hold_out_option,
    json_option,
    program_options,
    run_options,
)

if TYPE_CHECKING:
    from fabric.explore.sizing.result import Sizing
    from fabric.graph.wiring.program import Program


@click.command("size")
@program_options
@click.option(
    "--goal",
    default="same-cycles",
    show_default=True,
    help="deadlock-free; same-cycles, as with unbounded channels; slowdown=1.02; or cycles=N.",
)
@click.option(
    "--method",
    type=click.Choice(["search", "exact", "high-water", "paper-lp"]),
    default="search",
    show_default=True,
    help="The method that finds the depths; the report compares it with others.",
)
@click.option(
    "--objective",
    type=click.Choice(["bytes", "slots"]),
    default="bytes",
    show_default=True,
    help="What to minimise.",
)
@click.option(
    "--step",
    metavar="power-of-two|BYTES",
    help="Round the bytes of a channel up to blocks of this size.",
)
@depth_option("Pin the depth of one channel, in slots. CHANNEL is its reader, OPERATOR.INPUT.")
@run_options("hops", "placement", "livelock_cycles")
@click.option(
    "--share",
    metavar="PATTERN",
    multiple=True,
    help="Give all matching channels the same depth, as in 'load_up_*.0'.",
)
@click.option(
    "--repeat",
    "repeats",
    metavar="N",
    type=Whole(min=1),
    default=1,
    help="Find depths for N inputs back to back.",
)
@click.option(
    "--over",
    "--vary",
    metavar="NAME=VALUES",
    multiple=True,
    help="Inputs, as in a study; the depths keep the goal for every input.",
)
@hold_out_option("Hold N inputs out, and run them with the depths found for the rest.")
@file_option("-o", "output", "FILE.toml", "Write the depths, for `run --depths`.")
@click.option(
    "--rows",
    metavar="N",
    type=Whole(min=1),
    default=SHOWN,
    show_default=True,
    help="Show at most N rows of the table of channels.",
)
@json_option()
@click.pass_obj
def command(
    fields: dict[str, object],
    /,
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    options: dict[str, Any],
    over: tuple[str, ...],
    hold_out: int,
    output: Path | None,
    rows: int,
    as_json: bool,
    **choices: Any,
) -> int:
    """Find the depths of PROGRAM.py's channels that keep a goal at the least cost."""
    fields.update(program=program)
    from fabric.display.terminal import printed_sheet
    from fabric.explore.sizing.size import SizeOptions, find_depths
    from fabric.messages.output import ExitStatus, print_text, program_prints, tell
    from fabric.shell.json_object import print_json

    if output is not None and not output.parent.is_dir():
        raise ConfigurationError(f"{output}: there is no folder {output.parent}: expected a folder")
    with program_prints(as_json=as_json):
        inputs, held_out = _inputs(program, parameters, hardware_file, over, hold_out, fields)
        watched = sys.stdout.isatty() and sys.stderr.isatty()
        notify = (lambda text: tell(f"fabric: {text}")) if watched else None
        size_options = SizeOptions(held_out=held_out, notify=notify, **choices, **options)
        sizing = find_depths(inputs, size_options)
    if as_json:
        print_json({**fields, "status": "sized", **sizing.as_json(), "error": None})
    else:
        print_text(printed_sheet(sizing.sheet(rows)))
    status = ExitStatus.COMPLETED if sizing.keeps and not sizing.violated else ExitStatus.WRONG
    return status if output is None else _write(sizing, program, output) or status


def _inputs(
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    over: tuple[str, ...],
    hold_out: int,
    fields: dict[str, object],
) -> tuple[Program | dict[str, Program], dict[str, Program]]:
    if over:
        from fabric.explore.sizing.running import held_out, programs_of

        hardware = None if hardware_file is None else Path(hardware_file)
        return held_out(programs_of(Path(program), parameters, over, hardware), hold_out)
    if hold_out:
        raise click.UsageError("--hold-out: there is one input: expected several, with --over.")
    from fabric.graph.loading.program_file import load_on

    return load_on(hardware_file, program, parameters, fields).program, {}


def _write(sizing: Sizing, program: str, output: Path) -> int:
    from fabric.explore.sizing.depths_file import write_depths
    from fabric.explore.sizing.result import hops_text
    from fabric.messages.output import ExitStatus, tell

    with_hops = f" with {hops_text(sizing.hops)}" if sizing.hops else ""
    about = (
        f"{program}: {sizing.goal}, {sizing.cost:,} {sizing.objective}, {sizing.truth}",
        f"for `python -m fabric run --depths`{with_hops}",
    )
    try:
        write_depths(output, sizing.depths, about)
    except OSError as error:
        tell(f"fabric: {error.filename}: {error.strerror}")
        return ExitStatus.UNWRITTEN
    return ExitStatus.COMPLETED

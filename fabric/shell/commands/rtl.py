"""``rtl``: write the control of a program in SystemVerilog, and compare it with the fabric."""

from __future__ import annotations

from pathlib import Path

# Any: arguments of `simulate`, and the module of the hardware.
from typing import TYPE_CHECKING, Any, Final

import click

from fabric.shell.commands.options import (
    NamedPath,
    json_option,
    pieces_option,
    program_options,
    run_options,
)

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program

_COMPARED: Final = ("equal", "transfers", "channels", "cycles", "first_difference", "cost")
"""Fields of the JSON object that are null without --run, --cost or --place."""


@click.command("rtl")
@program_options
@run_options("depths", "hops")
@click.option(
    "-o",
    "output",
    metavar="DIR",
    required=True,
    type=NamedPath(path_type=Path, file_okay=False),
    help="The folder to write the files to.",
)
@click.option(
    "--run",
    "runs",
    is_flag=True,
    help="Build the design with Verilator; compare the cycle of every transfer with the fabric's.",
)
@click.option(
    "--cost",
    "costs",
    is_flag=True,
    help="Synthesise each module with Yosys for an ECP5, and print its resources.",
)
@click.option(
    "--place",
    "places",
    is_flag=True,
    help="Also place and route each module, and the whole design, with nextpnr; print the clock.",
)
@pieces_option
@json_option()
@click.pass_obj
def command(
    fields: dict[str, object],
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    options: dict[str, Any],
    output: Path,
    runs: bool,
    costs: bool,
    places: bool,
    pieces: tuple[int, int] | None,
    as_json: bool,
) -> int:
    """Write the control of PROGRAM.py, which decides when each tile moves, in SystemVerilog.

    Arithmetic on tiles is left out. The exit status is 1 if a transfer differs from the fabric's.
    """
    fields.update(program=program)
    from fabric.graph.loading.program_file import load_on
    from fabric.messages.files import name_in_errors
    from fabric.messages.output import print_text, program_prints
    from fabric.messages.text import counted
    from fabric.shell.json_object import print_json
    from fabric.shell.library import hardware_modules, lowered

    with program_prints(as_json=as_json):
        wired: Program = load_on(hardware_file, program, parameters, fields, wires=True).program
        if pieces is not None:
            wired = lowered(wired, *pieces)
        hardware = hardware_modules()
        design = hardware.design(wired, **options)
        with name_in_errors(output):
            files = hardware.write(design, output)
            comparison = hardware.run(design, files, output) if runs else None
            cost = hardware.cost(design, output, places=places) if costs or places else None

    units = len(design.netlist.units)
    modules = len({unit.module for unit in design.netlist.units})
    result: dict[str, object] = {"status": "written", "modules": modules, "units": units}
    result |= dict.fromkeys(_COMPARED)
    if comparison is not None:
        result |= {"status": "equal" if comparison.equal else "different", **comparison.as_json()}
    if cost is not None:
        result["cost"] = cost.as_json()
    if as_json:
        print_json(fields | result | {"error": None})
    else:
        lines = [f"written: {counted(units, 'unit')} of {counted(modules, 'kind')} in {output}"]
        lines += [str(each) for each in (comparison, cost) if each is not None]
        print_text("\n".join(lines) + "\n")
    return int(comparison is not None and not comparison.equal)

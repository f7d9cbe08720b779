"""``rtl``: write a program as SystemVerilog, and hold it against the fabric."""

from __future__ import annotations

from pathlib import Path

# Any: arguments of `simulate`, and the module of the hardware.
from typing import TYPE_CHECKING, Any

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


@click.command("rtl")
@program_options
@run_options("depths", "hops")
@click.option(
    "-o",
    "output",
    metavar="DIR",
    required=True,
    type=NamedPath(path_type=Path, file_okay=False),
    help="Where the files go.",
)
@click.option(
    "--run",
    "runs",
    is_flag=True,
    help="Build it with Verilator and compare the cycle of every transfer with the fabric's.",
)
@click.option(
    "--cost",
    "costs",
    is_flag=True,
    help="Synthesise each module with Yosys for an ECP5, and print what it takes.",
)
@click.option(
    "--place",
    "places",
    is_flag=True,
    help="Also place and route each of them, and the whole, with nextpnr; print the clock.",
)
@pieces_option
@json_option()
@click.pass_obj
def command(
    known: dict[str, object],
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
    """Write PROGRAM.py as SystemVerilog, with channels that take one element per cycle.

    The exit status is 1 if a transfer is in another cycle than the fabric says.
    """
    known.update(program=program)
    from fabric.graph.loading.program_file import load_on
    from fabric.messages.files import naming
    from fabric.messages.output import print_text, program_prints
    from fabric.messages.text import counted
    from fabric.shell.json_object import print_json, rtl_object
    from fabric.shell.library import hardware_modules, lowered

    with program_prints(as_json=as_json):
        built: Program = load_on(hardware_file, program, parameters, known, wires=True).program
        if pieces is not None:
            built = lowered(built, *pieces)
        made = hardware_modules()
        designed = made.design(built, **options)
        with naming(output):
            written = made.write(designed, output)
            compared = made.run(designed, written, output) if runs else None
            cost = made.cost(designed, output, places=places) if costs or places else None

    units = len(designed.netlist.units)
    modules = len({unit.module for unit in designed.netlist.units})
    found: dict[str, object] = {"status": "written", "modules": modules, "units": units}
    if compared is not None:
        found |= {"status": "equal" if compared.equal else "different", **compared.as_json()}
    if cost is not None:
        found["cost"] = cost.as_json()
    if as_json:
        print_json(rtl_object(**known, **found))
    else:
        lines = [f"written: {counted(units, 'unit')} of {counted(modules, 'kind')} in {output}"]
        lines += [str(each) for each in (compared, cost) if each is not None]
        print_text("\n".join(lines) + "\n")
    return int(compared is not None and not compared.equal)

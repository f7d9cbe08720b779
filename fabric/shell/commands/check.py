"""``check``: wire a program; print its shapes, traffic, memory and operations."""

from __future__ import annotations

from fractions import Fraction

import click

from fabric.shell.commands.options import json_option, program_options, sizes_option


@click.command("check")
@program_options
@sizes_option(
    "The size of a dimension that data decide; for a symbol with ~, the mean of its groups."
)
@click.option(
    "--data", is_flag=True, help="Use the sizes that the program's lists and bind() give."
)
@click.option("--memory-map", is_flag=True, help="Also print the address of each tensor.")
@json_option()
@click.pass_obj
def command(
    fields: dict[str, object],
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    sizes: dict[str, int | Fraction],
    data: bool,
    memory_map: bool,
    as_json: bool,
) -> int:
    """Wire PROGRAM.py and print its shapes and metrics; nothing runs."""
    fields.update(program=program)
    from fabric.analysis.symbolic.check import check
    from fabric.graph.loading.program_file import load_on
    from fabric.messages.output import print_text, program_prints
    from fabric.shell.json_object import print_json

    with program_prints(as_json=as_json):
        loaded = load_on(hardware_file, program, parameters, fields)
        checked = check(loaded.program, sizes, data=data)

    if as_json:
        print_json({**fields, "status": "checked", **checked.as_json(), "error": None})
        return 0
    from fabric.display.terminal import printed_sheet
    from fabric.shell.wiring_table import check_sheet, memory_map_sheet

    print_text(printed_sheet(check_sheet(checked, program)))
    if memory_map:
        print_text("\n" + printed_sheet(memory_map_sheet(checked.plan.memory_map)))
    return 0

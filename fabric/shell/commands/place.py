"""``place``: find a site on the mesh for each unit."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import click

from fabric.messages.errors import ConfigurationError
from fabric.shell.commands.options import (
    Whole,
    file_option,
    json_option,
    program_options,
    sizes_option,
)


@click.command("place")
@program_options
@click.option(
    "--site-bytes",
    metavar="N",
    type=Whole(min=0),
    help="The on-chip memory of a site, which its units share; by default the value in [network].",
)
@sizes_option("The size of a dimension that data decide, as in `check`.")
@click.option(
    "--seed",
    metavar="N",
    type=Whole(min=0),
    default=0,
    show_default=True,
    help="The seed of the search.",
)
@click.option(
    "--exact", is_flag=True, help="Search for a plan of least cost, for at most 30 units."
)
@file_option("-o", "output", "FILE.toml", "Write the site of each unit.")
@file_option("--picture", "picture", "FILE.svg", "Draw the floor.")
@json_option()
@click.pass_obj
def command(
    fields: dict[str, object],
    program: str,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    site_bytes: int | None,
    sizes: dict[str, int | Fraction],
    seed: int,
    exact: bool,
    output: Path | None,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Find a site for each unit of PROGRAM.py, so that bytes cross few links.

    The section [network] of the hardware file describes the mesh of sites.
    """
    fields.update(program=program)
    from fabric.analysis.placing.place import place
    from fabric.graph.loading.program_file import load_on
    from fabric.messages.files import output_file
    from fabric.messages.output import print_text, program_prints, tell
    from fabric.shell.json_object import print_json

    for file in (output, picture):
        if file is not None and not file.parent.is_dir():
            raise ConfigurationError(f"{file}: there is no folder {file.parent}: expected a folder")
    with program_prints(as_json=as_json):
        loaded = load_on(hardware_file, program, parameters, fields)
        plan = place(
            loaded.program,
            site_bytes=site_bytes,
            sizes=sizes,
            seed=seed,
            exactly=exact,
            notify=(lambda text: tell(f"fabric: {text}")) if sys.stderr.isatty() else None,
        )
    if output is not None:
        plan.write(output)
    if picture is not None:
        from fabric.analysis.placing.picture import floor_svg

        with output_file(picture, encoding="utf-8") as file:
            file.write(floor_svg(plan))
    if as_json:
        print_json({**fields, "status": "placed", **plan.as_json(), "error": None})
    else:
        from fabric.display.terminal import printed_sheet

        print_text(printed_sheet(plan.sheet()))
    return 0

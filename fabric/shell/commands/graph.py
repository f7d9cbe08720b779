"""``graph``: draw a program's operators, with shapes on the streams between them."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.messages.text import counted
from fabric.shell.commands.options import NamedPath, file_option, program_options
from fabric.shell.completing import runs

_FORMATS = (".svg", ".dot", ".mmd")


def _output(_context: click.Context, _parameter: click.Parameter, file: Path) -> Path:
    if file.suffix not in _FORMATS:
        raise click.BadParameter(f"{str(file)!r}: expected a name that ends in .svg, .dot or .mmd")
    return file


@click.command("graph")
@program_options
@file_option(
    "-o",
    "output",
    "FILE",
    "The file to write: .svg, .dot (Graphviz) or .mmd (Mermaid).",
    required=True,
    callback=_output,
)
@click.option("--unfold", is_flag=True, help="Draw every operator, even if many are alike.")
@click.option(
    "--run",
    "run_folder",
    metavar="RUN_DIR",
    type=NamedPath(path_type=Path),
    shell_complete=runs,
    help="Show where the cycles of a finished run went.",
)
@click.pass_obj
def command(
    fields: dict[str, object],
    program: str,
    output: Path,
    parameters: tuple[str, ...],
    hardware_file: str | None,
    unfold: bool,
    run_folder: Path | None,
) -> int:
    """Draw PROGRAM.py; a repeated part is drawn once, with the number of its copies."""
    fields.update(program=program)

    from fabric.analysis.drawing.picture import picture_of, shares_of_run
    from fabric.analysis.drawing.svg import dot, mermaid, svg
    from fabric.graph.loading.program_file import load_on
    from fabric.graph.wiring.elaborate import elaborate
    from fabric.messages.files import output_file
    from fabric.messages.output import print_text

    plan = elaborate(load_on(hardware_file, program, parameters, fields).program)
    shares = None if run_folder is None else shares_of_run(run_folder, plan)
    picture = picture_of(plan, unfold=unfold, shares=shares)
    draw = {".svg": svg, ".dot": dot, ".mmd": mermaid}[output.suffix]
    with output_file(output, encoding="utf-8") as file:
        file.write(draw(picture))
    print_text(
        f"{counted(len(plan.nodes), 'operator')} in {counted(len(picture.boxes), 'box')}, "
        f"drawn in {output}\n"
    )
    return 0

"""``operators``: list and explain operators and functions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fabric.messages.errors import ConfigurationError
from fabric.shell.completing import matching

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _names(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    from fabric.shell.library import installed

    return matching((entry.cls.__name__ for entry in installed()), typed)


@click.command("operators")
@click.argument("names", metavar="[FILE.py] [NAME]...", nargs=-1, shell_complete=_names)
def command(names: tuple[str, ...]) -> int:
    """List operators and functions, or explain each NAME, with an example.

    With FILE.py, use the operators and functions of this file.
    """
    if sys.flags.optimize > 1:
        raise ConfigurationError(
            "operators: Python runs with -OO, which removes docstrings: expected Python without -OO"
        )
    from fabric.display.terminal import printed_sheet
    from fabric.graph.loading.program_file import executed
    from fabric.messages.output import print_text
    from fabric.shell.library import entries_of, entry_named, entry_sheet, families_sheet, installed

    files = [name for name in names if name.endswith(".py")]
    entries = [each for file in files for each in entries_of(executed(file))]
    if not files:
        entries = installed()
    shown = [entry_named(name, entries) for name in names if name not in files]
    if not shown:
        print_text(printed_sheet(families_sheet(entries)))
    for number, entry in enumerate(shown):
        print_text("\n" if number else "")
        print_text(printed_sheet(entry_sheet(entry)))
    return 0

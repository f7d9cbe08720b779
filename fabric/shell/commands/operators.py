"""``operators``: what there is to build programs from, and what each does."""

from __future__ import annotations

from functools import partial

import click

from fabric.shell.completing import operators

__all__ = ["command"]


@click.command("operators")
@click.argument("names", metavar="[FILE.py] [NAME]...", nargs=-1, shell_complete=operators)
def command(names: tuple[str, ...]) -> int:
    """List operators and functions, or say what those called NAME do, with an example.

    With FILE.py they are those that this file defines.
    """
    from fabric.loading.program_file import executed
    from fabric.shell.library import entries_of, found, installed
    from fabric.shell.operator_text import print_entry, print_families
    from fabric.terminal.output import print_text, printed

    files = [name for name in names if name.endswith(".py")]
    entries = [each for file in files for each in entries_of(executed(file))]
    if not files:
        entries = installed()
    wanted = [found(name, entries) for name in names if name not in files]
    if not wanted:
        print_text(printed(lambda console: print_families(entries, console)))
    for number, entry in enumerate(wanted):
        print_text("\n" if number else "")
        print_text(printed(partial(print_entry, entry)))
    return 0

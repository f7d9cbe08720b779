"""``examples``: programs to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.shell.commands.options import NamedPath

__all__ = ["command"]


@click.command("examples")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "-o",
    "file",
    metavar="FILE.py",
    type=NamedPath(path_type=Path),
    help="Where the program is written, with the modules it imports beside it.",
)
def command(name: str | None, file: Path | None) -> int:
    """List the example programs, print the one called NAME, or write it to a file."""
    from fabric.graph.loading.examples import copied, examples, text_of
    from fabric.messages.terminal.output import print_text

    if name is None:
        if file is not None:
            raise click.UsageError("-o FILE.py needs the NAME of an example.")
        known = examples()
        width = max(map(len, known))
        print_text("".join(f"{each:<{width}}  {line}\n" for each, line in known.items()))
    elif file is None:
        print_text(text_of(name))
    else:
        written = copied(name, file)
        beside = sorted({each.relative_to(file.parent).parts[0] for each in written} - {file.name})
        also = f", and what it imports: {', '.join(beside)}" if beside else ""
        print_text(f"wrote {file}{also}; now:\n  python -m fabric run {file}\n")
    return 0

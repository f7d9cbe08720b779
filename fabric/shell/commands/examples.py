"""``examples``: example programs, and copies with their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from fabric.messages.errors import ConfigurationError
from fabric.messages.files import output_file, programs
from fabric.messages.text import one_of
from fabric.shell.commands.options import NamedPath


def examples() -> dict[str, str]:
    """Return the names of the example programs, each with the first line of its docstring."""
    return {
        file.stem: (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]
        for file in sorted(programs().glob("*.py"))
    }


def copied(name: str, to: Path) -> list[Path]:
    """Copy an example and its imports to ``to``; return the written paths.

    Equal files are kept, other files are an error.
    """
    source = _file(name)
    files = {to: source.read_text("utf-8")}
    for module in _imported(source):
        files[to.parent / module.relative_to(programs())] = module.read_text("utf-8")
    for file, text in files.items():
        if file.exists() and (not file.is_file() or file.read_bytes() != text.encode("utf-8")):
            raise ConfigurationError(
                f"{file} is here already, with another text: expected another name or folder"
            )
    written = [file for file in files if not file.exists()]
    for file in written:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Mode x never overwrites a file of another process.
        with output_file(file, "x", encoding="utf-8") as opened:
            opened.write(files[file])
    return written


def _file(name: str) -> Path:
    names = list(examples())
    name = name.removesuffix(".py")
    if name not in names:
        raise ConfigurationError(f"{name} is not an example: expected {one_of(names, name)}")
    return programs() / f"{name}.py"


def _imported(source: Path) -> list[Path]:
    imported: set[Path] = set()
    waiting = [source]
    while waiting:
        for module in _modules(waiting.pop()):
            if module not in imported and module != source:
                imported.add(module)
                waiting.append(module)
    return sorted(imported)


def _modules(source: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # An imported name may be a module of a package.
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                place = programs().joinpath(*parts[:length])
                for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                    if file.is_file():
                        yield file


@click.command("examples")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "-o",
    "file",
    metavar="FILE.py",
    type=NamedPath(path_type=Path),
    help="Write the program to this file, and the modules it imports into the same folder.",
)
def command(name: str | None, file: Path | None) -> int:
    """List the example programs, print the one called NAME, or write it to a file."""
    from fabric.messages.output import print_text

    if name is None:
        if file is not None:
            raise click.UsageError("-o FILE.py needs the NAME of an example.")
        lines = examples()
        width = max(map(len, lines))
        print_text("".join(f"{each:<{width}}  {line}\n" for each, line in lines.items()))
    elif file is None:
        print_text(_file(name).read_text("utf-8"))
    else:
        written = copied(name, file)
        beside = sorted({each.relative_to(file.parent).parts[0] for each in written} - {file.name})
        also = f", and its imports: {', '.join(beside)}" if beside else ""
        print_text(f"wrote {file}{also}; now:\n  python -m fabric run {file}\n")
    return 0

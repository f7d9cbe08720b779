"""The pages of the documentation that are written from the code.

``python -m tests.docs.reference`` writes them anew: the operators from their docstrings, the
commands from the command line itself, the library from the facade's list of names.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

import operators
from fabric.arguments.documented import parameters
from fabric.shell.cli import command_line
from fabric.shell.library import Entry, families, installed
from fabric.shell.operator_text import SECTIONS, parameter_text

__all__ = ["PAGES", "pages"]

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "pages"

_GENERATED: Final = "<!-- Written by `poe reference` from the code. -->\n"
_WIDTH: Final = 80
_PARAMETERS: Final = re.compile(r", (?=[*\w]+(?::|,|$))")
_CODE: Final = re.compile(r"(`+[^`]+`+)")


def pages() -> dict[str, str]:
    """Return the text of each generated page by its path below ``PAGES``."""
    members = families(installed())
    made = {"operators/index.md": _index(members)}
    for family, group in members.items():
        made[f"operators/{_slug(family)}.md"] = _family(family, group)
    made["reference/commands.md"] = "\n".join(_commands())
    made["reference/library.md"] = "\n".join(_library())
    return made


def _index(members: Mapping[str, list[Entry]]) -> str:
    lines = ["# Operators and functions\n", _GENERATED]
    lines.append(
        "You build programs from these. `python -m fabric operators` prints this list, and\n"
        "`python -m fabric operators NAME` explains one of them; `help(Map)` does so in Python.\n"
        "\n"
        "Shapes are written with the outermost dimension first. In `[D_a, ..., D_0]` the rank is\n"
        "`a`, and `D_0` is the innermost dimension. *Ragged* sizes differ from group to group.\n"
        "The [terms](../reference/terms.md) explain this and the other words.\n"
    )
    for family, group in members.items():
        page = f"{_slug(family)}.md"
        lines += [f"## [{family}]({page})\n", "| | |", "|---|---|"]
        lines += [
            f"| [{each.name}]({page}#{each.name.lower()}) | {_prose(each.text.summary)} |"
            for each in group
        ]
        lines.append("")
    return "\n".join(lines)


def _family(family: str, group: list[Entry]) -> str:
    about = "The [overview](index.md) explains how shapes are written.\n"
    return "\n".join(
        [f"# {family}\n", _GENERATED, about, *(line for each in group for line in _of(each))]
    )


def _of(entry: Entry) -> Iterator[str]:
    yield f"## {entry.name}\n"
    yield "```python"
    yield f"{entry.origin}\n"
    yield _call(entry)
    yield "```\n"
    yield f"{_prose(entry.text.summary)}\n"
    if entry.text.details:
        yield f"{_prose(entry.text.details)}\n"
    for title in SECTIONS:
        if title in entry.text.sections:
            yield f"**{title}.** {_prose(entry.text.sections[title])}\n"
    given = list(parameters(entry.cls))
    if given:
        yield "| parameter | |"
        yield "|---|---|"
        for each in given:
            yield f"| `{each.name}` | {_prose(parameter_text(each))} |"
        yield ""
    yield "```python"
    yield str(entry.example)
    yield "```\n"


def _call(entry: Entry) -> str:
    """Return how it is made and called, a line for each parameter where one line is too long."""
    given = str(inspect.signature(entry.cls))
    if len(entry.name + given) > _WIDTH:
        inner = "".join(f"    {each},\n" for each in _PARAMETERS.split(given[1:-1]))
        given = f"(\n{inner})"
    return f"{entry.name}{given}{entry.call or ''}"


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield _GENERATED
    yield "`step-fabric` is the same as `python -m fabric`. Each command prints its part of this"
    yield "page with `--help`.\n"
    yield from _command(command_line, "python -m fabric", None)


def _command(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        max_content_width=88,
        terminal_width=88,
        help_option_names=["-h", "--help"],
    )
    yield f"## {context.command_path}\n"
    yield "```text"
    yield command.get_help(context)
    yield "```\n"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            child = command.get_command(context, each)
            assert child is not None
            yield from _command(child, each, context)


def _library() -> Iterator[str]:
    """Yield a page of directives: mkdocstrings puts the docstrings in their places."""
    yield "# Library\n"
    yield _GENERATED
    yield "This page lists what `import fabric` offers, room by room, then what authors of"
    yield "operators and other extensions import from `fabric.extend`, and what `import operators`"
    yield "offers besides [operators and functions](../operators/index.md).\n"
    shown = {each.name for each in installed()}
    for file, facade, level in (
        ("__init__.pyi", "fabric", "##"),
        ("extend.pyi", "fabric.extend", "###"),
    ):
        if facade == "fabric.extend":
            yield "## For extensions: what `import fabric.extend` offers\n"
        rooms: dict[str, list[str]] = {}
        for statement in ast.parse((ROOT / "fabric" / file).read_text(encoding="utf-8")).body:
            assert isinstance(statement, ast.ImportFrom)
            room, _, _ = str(statement.module).partition(".")
            rooms.setdefault(room, []).extend(each.name for each in statement.names)
        for room, names in sorted(rooms.items(), key=lambda each: _floor(each[0])):
            text = ast.get_docstring(
                ast.parse((ROOT / "fabric" / room / "__init__.py").read_text(encoding="utf-8"))
            )
            yield f"{level} {str(text).splitlines()[0].rstrip('.')}\n"
            yield from (f"::: {facade}.{name}\n" for name in sorted(names) if name not in shown)
    yield "## Serving: what `import fabric.serving` offers\n"
    stub = ROOT / "fabric" / "serving" / "__init__.pyi"
    for statement in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.ImportFrom)
        yield from (f"::: fabric.serving.{each.name}\n" for each in statement.names)
    yield "## Tensors, integers and the bases of functions\n"
    for name in dir(operators):
        if name not in shown:
            yield f"::: operators.{name}\n"
    yield "## Programs in physical pieces\n"
    yield "::: operators.pieces.in_pieces\n"
    yield "## Models of PyTorch, with the extra torch\n"
    stub = ROOT / "operators" / "torch" / "__init__.pyi"
    for statement in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.ImportFrom)
        for name in (each.name for each in statement.names):
            # A module of the same name would be shown in its place.
            place = f"{name}.{name}" if name == statement.module else name
            yield f"::: operators.torch.{place}\n"


def _floor(room: str) -> int:
    """Return how far down a room is: what users meet first is above."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers: list[str] = settings["tool"]["importlinter"]["contracts"][-1]["layers"]
    return next(floor for floor, rooms in enumerate(layers) if room in rooms.split(" | "))


def _prose(text: str) -> str:
    """Return a text of a docstring as Markdown on one line for each paragraph."""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return "\n\n".join(
        "".join(
            part.replace("``", "`") if part.startswith("`") else _escaped(part)
            for part in _CODE.split(each)
        )
        for each in paragraphs
    )


def _escaped(text: str) -> str:
    return re.sub(r"([*<>|\[\]])", r"\\\1", text)


def _slug(family: str) -> str:
    return "-".join(re.findall(r"[a-z]+", family.partition(" (")[0].lower()))


if __name__ == "__main__":
    for path, text in pages().items():
        file = PAGES / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

"""Pages of the documentation that are written from the code.

``python -m tests.docs.reference`` writes them: the operators from their docstrings, the commands
from the command line, the library from the names of the facades.
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
from fabric.graph.arguments.keywords import parameters
from fabric.shell.cli import command_line
from fabric.shell.library import SECTIONS, Entry, families, installed, parameter_text

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "pages"

GENERATED: Final = "<!-- Written by `poe reference` from the code. -->\n"

_WIDTH: Final = 80
_PARAMETERS: Final = re.compile(r", (?=[*\w]+(?::|,|$))")
_CODE: Final = re.compile(r"(`+[^`]+`+)")


def pages() -> dict[str, str]:
    members = families(installed())
    made = {"operators/index.md": _index(members)}
    for family, group in members.items():
        made[f"operators/{_slug(family)}.md"] = _family(family, group)
    made["reference/commands.md"] = "\n".join(_commands())
    made |= _library()
    return made


def _index(members: Mapping[str, list[Entry]]) -> str:
    lines = ["# Operators and functions\n", GENERATED]
    lines.append(
        "You build programs from these. `python -m fabric operators` prints this list, and\n"
        "`python -m fabric operators NAME` explains one of them. In Python, `help(Map)` does so.\n"
        "\n"
        "Shapes are written with the outermost dimension first. In `[D_a, ..., D_0]` the rank is\n"
        "`a`, and `D_0` is the innermost dimension. *Ragged* sizes differ from group to group.\n"
        "The parameter `rank` of an operator says how many innermost dimensions it works on.\n"
        "An operator without *Timing* takes no cycles, and one without *Memory* no memory.\n"
        "The [terms](../reference/terms.md) explain these and the other words.\n"
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
        [f"# {family}\n", GENERATED, about, *(line for each in group for line in _of(each))]
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
    given = str(inspect.signature(entry.cls))
    if len(entry.name + given) > _WIDTH:
        inner = "".join(f"    {each},\n" for each in _PARAMETERS.split(given[1:-1]))
        given = f"(\n{inner})"
    return f"{entry.name}{given}{entry.call or ''}"


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield GENERATED
    yield "`step-fabric` is the same as `python -m fabric`. Each command prints its part of this"
    yield "page with `--help`.\n"
    yield "For a program called `collections.py`, `contextlib.py`, `fabric.py`, `functools.py`,"
    yield "`keyword.py`, `operator.py`, `reprlib.py`, `types.py` or `warnings.py`, use"
    yield "`step-fabric` or `python -P -m fabric`: with `-m`, Python executes such a file before"
    yield "the fabric.\n"
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


def _library() -> dict[str, str]:
    """Return the overview of the library and a page for each topic.

    mkdocstrings replaces the directives of a topic by docstrings.
    """
    lines = [
        "# Library\n",
        GENERATED,
        "These are the public names, topic by topic. `import fabric` is for programs.",
        "`fabric.extend` is for authors of operators and other extensions. `operators` offers some",
        "names besides the [operators and functions](../operators/index.md).\n",
        "In the documentation that is built as a site (`poe site`), the page of a topic explains",
        "each name. In the source folder these pages are only lists of names for that site, so use",
        "`help(fabric.Study)` in Python there.\n",
    ]
    made = {}
    for slug, title, names in _topics():
        if not names:
            continue
        lines += [f"## [{title}](library/{slug}.md)\n", "| | |", "|---|---|"]
        lines += [f"| `{_short(name)}` | {_prose(_sentence(name))} |" for name in names]
        lines.append("")
        shown = [f"::: {name}\n" for name in names]
        made[f"reference/library/{slug}.md"] = "\n".join([f"# {title}\n", GENERATED, *shown])
    return {"reference/library.md": "\n".join(lines), **made}


def _topics() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the title, the file name and the names of each topic."""
    shown = {each.name for each in installed()}
    rooms: dict[str, list[str]] = {}
    for stub in ("fabric/__init__", "fabric/extend"):
        facade = stub.removesuffix("/__init__").replace("/", ".")
        found = sorted(_offered(stub), key=lambda each: each[1])
        for room, name in found:
            if name not in shown:
                rooms.setdefault(_room(room), []).append(f"{facade}.{name}")
    for room, names in sorted(rooms.items(), key=lambda each: _floor(each[0])):
        tree = ast.parse((ROOT / "fabric" / room / "__init__.py").read_text(encoding="utf-8"))
        title = str(ast.get_docstring(tree)).splitlines()[0].rstrip(".")
        yield room.rpartition("/")[2], title, names
    serving = [f"fabric.serving.{name}" for _, name in _offered("fabric/serving")]
    yield "serving", "Serving: what `import fabric.serving` offers", serving
    others = [f"operators.{name}" for name in dir(operators) if name not in shown]
    yield "operators", "Tensors, integers and the bases of functions", others
    yield "pieces", "Programs in physical pieces", ["operators.pieces.in_pieces"]
    # A module of the same name would be shown in its place.
    places = (
        f"{name}.{name}" if name == module else name
        for module, name in _offered("operators/torch/__init__")
    )
    names = [f"operators.torch.{place}" for place in places]
    yield "torch", "Models of PyTorch, with the extra torch", names


def _offered(stub: str) -> Iterator[tuple[str, str]]:
    for statement in ast.parse((ROOT / f"{stub}.pyi").read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.ImportFrom)
        yield from ((str(statement.module), each.name) for each in statement.names)


def _short(name: str) -> str:
    """Return a name as it is imported; a module is replaced by its only function."""
    package, _, last = name.rpartition(".")
    return last if package.endswith(last) or package == "fabric" else name


def _sentence(name: str) -> str:
    """Return the first line of a docstring, read from the source, since PyTorch may be missing."""
    package, _, last = name.rpartition(".")
    body = ast.parse(_source(package.removesuffix(f".{last}"), last).read_text("utf-8")).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name == last:
            return str(ast.get_docstring(statement)).partition("\n")[0]
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(each, ast.Name) and each.id == last for each in targets):
            told = getattr(getattr(after, "value", None), "value", None)
            return str(told).partition("\n")[0] if isinstance(told, str) else ""
    return ""


def _source(package: str, name: str) -> Path:
    folder = ROOT / package.replace(".", "/")
    stub = folder / "__init__.pyi"
    if package in ("fabric.extend", "fabric.serving"):
        folder, stub = folder.parent, folder.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else stub.with_suffix(".py")).read_text("utf-8"))
    module = next(
        str(each.module)
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and name in [alias.name for alias in each.names]
    ).removeprefix(f"{package}.")
    file = folder / f"{module.replace('.', '/')}.py"
    return file if file.exists() else _source(f"{package}.{module}", name)


def _room(module: str) -> str:
    """Return the folder of a module: WING/ROOM, or the wing."""
    wing, *inside = module.split(".")
    room = "/".join([wing, *inside[:1]])
    return room if (ROOT / "fabric" / room).is_dir() else wing


def _floor(room: str) -> list[int]:
    """Return the place of a wing and its room in the order of the layers."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wings, rooms = (each["layers"] for each in settings["tool"]["importlinter"]["contracts"][-2:])
    return [
        next(floor for floor, names in enumerate(layers) if name in re.findall(r"\w+", names))
        for name, layers in zip(room.split("/"), (wings, rooms), strict=False)
    ]


def _prose(text: str) -> str:
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

"""Text that the site has in addition to the files in ``docs/pages``: docstrings and help texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import operators
from fabric.shell.cli import command_line
from fabric.shell.library import installed

ROOT: Final = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each module that users import; mkdocstrings fills in the docstrings."""
    for name, text in library().items():
        files.append(File.generated(config, f"reference/library/{name}.md", content=text))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str | None:
    """Add the help text of each command to the page of commands."""
    del config, files
    if page.file.src_uri != "reference/commands.md":
        return None
    return "\n".join([markdown, *_help(command_line, "python -m fabric", None)])


def library() -> dict[str, str]:
    """Return the text of each page of docstrings, by the name of its file.

    Operators and functions are left out, because ``docs/pages/operators`` has them.
    """
    explained = {entry.name for entry in installed()}
    others = [f"operators.{name}" for name in dir(operators) if name not in explained]
    # `operators.torch.from_torch` would name the module of this name.
    torch = [
        f"operators.torch.{module}.{name}" if name == module else f"operators.torch.{name}"
        for module, name in _imports(ROOT / "operators/torch/__init__.pyi")
    ]
    return {
        "fabric": _facade("fabric", "fabric/__init__.pyi", explained),
        "extend": _facade("fabric.extend", "fabric/extend.pyi", explained),
        "serving": _facade("fabric.serving", "fabric/serving.pyi", explained),
        "operators": _page("operators", [*others, "operators.pieces.in_pieces"]),
        "torch": _page("operators.torch", torch),
    }


def _facade(module: str, stub: str, explained: set[str]) -> str:
    """Return a page with a section for each folder of the package that the stub imports from."""
    lines = [f"# {module}"]
    for folder, names in groupby(_imports(ROOT / stub), lambda imported: _folder(imported[0])):
        shown = [f"::: {module}.{name}" for _, name in names if name not in explained]
        if shown:
            text = (ROOT / "fabric" / folder / "__init__.py").read_text(encoding="utf-8")
            title = str(ast.get_docstring(ast.parse(text))).splitlines()[0]
            lines += [f"## {title.partition(':')[0].rstrip('.')}", *shown]
    return "\n\n".join(lines)


def _page(module: str, names: list[str]) -> str:
    return "\n\n".join([f"# {module}", *(f"::: {name}" for name in names)])


def _imports(stub: Path) -> Iterator[tuple[str, str]]:
    for statement in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.ImportFrom)
        yield from ((str(statement.module), alias.name) for alias in statement.names)


def _folder(module: str) -> str:
    """Return the path of the package of ``module``, at most two folders deep."""
    path = Path(*module.split(".")[:2])
    return str(path if (ROOT / "fabric" / path).is_dir() else path.parent)


def _help(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        max_content_width=88,
        terminal_width=88,
        help_option_names=["-h", "--help"],
    )
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            assert child is not None
            yield from _help(child, child_name, context)

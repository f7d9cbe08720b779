"""What a shell completes besides commands: run folders, parameters, channels."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

__all__ = ["Completer", "channels", "matching", "parameters", "runs"]

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""What click asks for what may stand where somebody types."""


def runs(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a run folder with a trace: those in ``logs``, or below what is typed."""
    below = Path(typed).parent if "/" in typed else Path("logs")
    found = [str(trace.parent) for trace in sorted(below.glob("*/trace"))]
    # Where none is meant, the shell offers folders.
    return matching(found, typed) or [CompletionItem(typed, type="dir")]


def parameters(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete ``NAME=`` of the ``build`` in the program that stands on the line; it is not run."""
    # Behind an option without its value click has not read what stands before it.
    words = os.environ.get("COMP_WORDS", "").split()
    program = next((word for word in words if word.endswith(".py")), "")
    try:
        tree = ast.parse(Path(program).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    names = [
        f"{argument.arg}="
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "build"
        for argument in (*node.args.args, *node.args.kwonlyargs)
    ]
    return matching(names, typed)


def channels(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete ``CHANNEL=`` of the run that stands on the line."""
    from fabric.telling.errors import FabricError
    from fabric.trace.opened import open_trace

    words = os.environ.get("COMP_WORDS", "").split()
    run = next((word for word in words if (Path(word) / "trace").is_dir()), "")
    try:
        rows = open_trace(Path(run)).tables["channels"].rows()
    except FabricError:
        return []
    return matching((f"{row[2]}=" for row in rows), typed)


def matching(names: Iterable[str], typed: str) -> list[CompletionItem]:
    """Return those of ``names`` that begin with what is typed."""
    return [CompletionItem(name) for name in names if name.startswith(typed)]

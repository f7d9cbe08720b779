"""Shell completion of run folders, parameters and channels."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem


def runs(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a run folder with a trace, in ``logs`` or below the typed folder."""
    # A text without `/` completes to runs in `logs`.
    below = Path(f"{typed.rpartition('/')[0]}/") if "/" in typed else Path("logs")
    folders = [str(trace.parent) for trace in sorted(below.glob("*/trace"))]
    # Without a match, the shell offers folders.
    return matching(folders, typed) or [CompletionItem(typed, type="dir")]


def parameters(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Complete parameters of ``build`` in the typed program, which is not executed."""
    # click reads no argument of a line that ends with an option without a value.
    words = os.environ.get("COMP_WORDS", "").split()
    program = next((word for word in words if word.endswith(".py")), "")
    try:
        tree = ast.parse(Path(program).read_text(encoding="utf-8-sig"))
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
    """Complete ``CHANNEL=`` from a recorded run; the program is not executed."""
    words = os.environ.get("COMP_WORDS", "").split()
    typed_runs = (Path(word) for word in words if (Path(word) / "counters.json").is_file())
    run = next(typed_runs, None) or _last_run(words)
    if run is None:
        return []
    names = [channel["name"] for channel in _read(run / "counters.json").get("channels", ())]
    return matching((f"{name.partition(' -> ')[2]}=" for name in names), typed)


def _last_run(words: Sequence[str]) -> Path | None:
    counted = sorted(Path("logs").glob("*/counters.json"), key=lambda file: -file.stat().st_mtime)
    for folder in (file.parent for file in counted):
        if _read(folder / "report.json").get("program") in words:
            return folder
    return None


# Any: JSON of any content, since users may type a folder that is not a run's.
def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def matching(names: Iterable[str], typed: str) -> list[CompletionItem]:
    """Return ``names`` with the prefix ``typed``."""
    return [CompletionItem(name) for name in names if name.startswith(typed)]

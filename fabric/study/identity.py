"""What a point's numbers depend on, as one digest: with the same one nothing is run again."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from fabric.study.space import Scalar, Setting
from fabric.study.study import Study

__all__ = ["Identities", "engine_digest"]

_ENGINE: Final = ("fabric", "operators")


class Identities:
    """Digests of the points of a study.

    A digest is of the program's file and of the modules that it imports from its folder, of the
    hardware file, the mode, the sources of the fabric and the operators, and of the whole setting;
    where a value is the path of a file, of what the file has. Where files are does not matter.
    """

    def __init__(self, study: Study) -> None:
        """Look at what all points have in common.

        Raises:
            OSError: a file cannot be read.
        """
        self._study: Final = study
        self._common: Final = _digest(
            [
                [_file_digest(path) for path in _files_of(study.program)],
                None if study.hardware is None else _file_digest(study.hardware),
                study.mode,
                engine_digest(),
            ]
        )

    def of(self, setting: Setting) -> str:
        """Return the digest of a point."""
        whole = self._study.whole(setting)
        return _digest([self._common, {name: _content(whole[name]) for name in sorted(whole)}])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _content(value: Scalar) -> list[Scalar]:
    """Return what tells a value from all others: 1, 1.0, true and "1" are four."""
    if isinstance(value, str) and value and Path(value).is_file():
        return ["file", _file_digest(Path(value))]
    return [type(value).__name__, value]


@lru_cache(maxsize=1024)
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files_of(program: Path) -> list[Path]:
    """Return a program's file and those in its folder that it imports, one after the other."""
    folder = program.resolve().parent
    found = {program.resolve(): None}
    waiting = list(found)
    while waiting:
        for path in _imported(waiting.pop(), folder):
            if path not in found:
                found[path] = None
                waiting.append(path)
    return [program.resolve(), *sorted(set(found) - {program.resolve()})]


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    """Return the files of modules in ``folder`` that ``file`` imports anywhere."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # its run says what is wrong with it
    for node in ast.walk(tree):
        names: list[str] = []
        base = folder
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}".strip(".") for alias in node.names]
            for _ in range(node.level - 1):
                base = base.parent
            base = file.parent if node.level == 1 else base
        for name in names:
            yield from _modules(base, name.split("."))


def _modules(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Return the files that importing ``a.b.c`` executes, as far as they are in ``folder``."""
    for part in parts:
        file, package = folder / f"{part}.py", folder / part / "__init__.py"
        if package.is_file():
            yield package
        elif file.is_file():
            yield file
        folder /= part


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """Return the digest of the sources of the fabric and the operators."""
    digests: list[list[str]] = []
    for name in _ENGINE:
        found = importlib.util.find_spec(name)
        for folder in (found and found.submodule_search_locations) or ():
            root = Path(folder)
            digests.extend(
                [path.relative_to(root).as_posix(), _file_digest(path)]
                for path in sorted(root.rglob("*.py"))
            )
    return _digest(digests)

"""Which modules import which, and circles among them; imports for types count like all others."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import networkx as nx

__all__ = ["circle_in", "imports_of", "imports_under"]

_BY_NAME: Final = ("import_module", "__import__")
"""Functions that are given the name of a module."""

_FUTURE: Final = "from __future__ import annotations\n"
"""May stand at the beginning of a text only."""


def imports_under(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the modules of ``packages`` in the folder ``root``, each with those it imports.

    A stub beside a module names what is loaded when it is first used: that counts, too.
    """
    sources: defaultdict[str, str] = defaultdict(str)
    for package in packages:
        for path in sorted((root / package).rglob("*.py*")):
            if path.suffix in (".py", ".pyi"):
                parts = path.relative_to(root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                sources[name] += path.read_text(encoding="utf-8").replace(_FUTURE, "")
    return imports_of(sources)


def imports_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules of ``sources``, texts by name, each with those of them it imports.

    Where a name is the beginning of what a module is imported by (an f-string), all modules with
    that beginning count.
    """
    return {
        module: {
            found
            for named in _named(ast.parse(text), module)
            for found in _meant(named, sources)
            if found != module
        }
        for module, text in sources.items()
    }


def circle_in(imports: Mapping[str, set[str]]) -> list[str]:
    """Return a shortest circle, its modules in the order in which they import; none is empty."""
    graph = nx.DiGraph([(module, other) for module, others in imports.items() for other in others])
    circles = []
    for group in nx.strongly_connected_components(graph):
        if len(group) > 1:
            first = min(group)
            inside = graph.subgraph(group)
            back = min(
                (nx.shortest_path(inside, after, first) for after in inside[first]),
                key=lambda path: (len(path), path),
            )
            circles.append([first, *back])
    return min(circles, key=lambda circle: (len(circle), circle), default=[])


def _named(tree: ast.Module, package: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of what ``tree`` imports; one after another until one of them is a module.

    Only the beginnings of packages import by their place, as stubs have to.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((alias.name,) for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0 | 1 as level):
                # A name in a package may be a module of its own.
                whole = f"{package}.{module}" if level else module
                yield from ((f"{whole}.{alias.name}", whole) for alias in names)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[given, *_]) if (
                name in _BY_NAME
            ):
                text, all_of_it = _beginning(given)
                yield (text,) if all_of_it else (f"{text}*",)


def _beginning(given: ast.expr) -> tuple[str, bool]:
    """Return the text that ``given`` is known to begin with, and whether it is all of it."""
    match given:
        case ast.Constant(value=str(text)):
            return text, True
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text, False
    raise ValueError(f"line {given.lineno}: a module is imported by a name that cannot be read")


def _meant(named: tuple[str, ...], modules: Mapping[str, object]) -> list[str]:
    for name in named:
        if name.endswith("*"):
            return [module for module in modules if module.startswith(name[:-1])]
        if name in modules:
            return [name]
    return []

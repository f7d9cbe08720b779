"""Single mutations of the package, as Cosmic Ray makes them, and a sample of them."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

__all__ = ["PACKAGES", "Mutant", "all_at", "made_again", "sampled"]

PACKAGES: Final = ("fabric", "operators")

Position: TypeAlias = tuple[int, int]
Site: TypeAlias = tuple[Position, Position]

_SEEN_BY_NO_RUN: Final = {"override", "overload", "abstractmethod"}
"""Decorators that only a type checker reads."""


_SIGNATURES: Final = {"parameters", "lambdef", "param", "arglist", "argument"}
"""Where a ``*`` multiplies nothing."""


@dataclass(frozen=True)
class Mutant:
    """A module with one thing changed.

    Attributes:
        file: the module, relative to the root of the repository.
        line: the first that differs.
        operator: of Cosmic Ray.
        occurrence: which of the places in the module that it can mutate.
        before, after: that line, without and with the change.
        source: the whole module with the change.
    """

    file: str
    line: int
    operator: str
    occurrence: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when lines move."""
        return self.file, self.before, self.after


def sampled(root: Path, count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants spread evenly over the lines of all modules.

    Every k-th place that can be mutated is taken, from a first one that ``seed`` decides, and there
    one of the mutations. What a run cannot see (annotations, what only a type checker reads) is not
    mutated, and neither is what would no longer be Python.
    """
    source = random.Random(seed)
    sites = [
        (module, kinds)
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for module in [_Module(root, path)]
        for _, kinds in sorted(module.sites.items())
    ]
    step = len(sites) / count
    start = source.random() * step
    mutants: list[Mutant] = []
    for number in range(count):
        place = int(start + number * step)
        while (found := _one_of(*sites[place % len(sites)], source)) is None or found in mutants:
            place += 1
        mutants.append(found)
    return mutants


def all_at(root: Path, file: str, line: int) -> list[Mutant]:
    """Return every mutation of one line."""
    module = _Module(root, root / file)
    made = [
        module.mutant(*kind)
        for (start, end), kinds in sorted(module.sites.items())
        if start[0] <= line <= end[0]
        for kind in kinds
    ]
    return [mutant for mutant in made if mutant is not None and mutant.line == line]


def made_again(root: Path, file: str, operator: str, occurrence: int) -> Mutant | None:
    """Return a mutant that was made before; None where there is none such any more."""
    return _Module(root, root / file).mutant(operator, occurrence)


def _one_of(module: _Module, kinds: list[tuple[str, int]], source: random.Random) -> Mutant | None:
    """Return one of the mutations of a place; None where none is Python with another meaning."""
    for operator, occurrence in source.sample(kinds, len(kinds)):
        mutant = module.mutant(operator, occurrence)
        if mutant is not None:
            return mutant
    return None


class _Module:
    """A module and the places in it that can be mutated."""

    def __init__(self, root: Path, path: Path) -> None:
        self._file = str(path.relative_to(root))
        self._text = path.read_text(encoding="utf-8")

    @cached_property
    def sites(self) -> dict[Site, list[tuple[str, int]]]:
        """The mutations of each place: an operator, and which of its occurrences it is."""
        hidden = list(_hidden(ast.parse(self._text)))
        nodes = list(ast_nodes(get_ast(self._text)))
        found: defaultdict[Site, list[tuple[str, int]]] = defaultdict(list)
        for name in cosmic_ray.plugins.operator_names():
            kind = cosmic_ray.plugins.get_operator(name)
            if kind.arguments():
                continue
            operator = kind()
            positions = [(node, *at) for node in nodes for at in operator.mutation_positions(node)]
            for occurrence, (node, start, end) in enumerate(positions):
                marks = node.type == "operator" and node.parent.type in _SIGNATURES
                if not marks and not any(a <= start and end <= b for a, b in hidden):
                    found[start, end].append((name, occurrence))
        return found

    def mutant(self, operator: str, occurrence: int) -> Mutant | None:
        """Return one mutation; None where it is no Python, or means the same."""
        kind = cosmic_ray.plugins.get_operator(operator)
        try:
            changed = mutate_code(self._text, kind(), occurrence)
            if changed is None or _same(self._text, changed):
                return None
        # Cosmic Ray replaces no exception that has dots in its name.
        except (SyntaxError, AttributeError):
            return None
        before, after = self._text.splitlines(), changed.splitlines()
        pairs = zip([*before, ""], [*after, ""], strict=False)
        line = next(number for number, (old, new) in enumerate(pairs) if old != new)
        return Mutant(
            self._file,
            line + 1,
            operator,
            occurrence,
            before[line].strip(),
            after[line].strip(),
            changed,
        )


def _same(before: str, after: str) -> bool:
    return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))


def _hidden(tree: ast.Module) -> Iterator[Site]:
    """Return the places that no run can see."""
    for node in ast.walk(tree):
        parts: list[Any] = []
        if isinstance(node, ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node.returns]
            for each in filter(_unseen, node.decorator_list):
                yield (each.lineno, 0), (each.lineno + 1, 0)
        elif isinstance(node, ast.AnnAssign):
            alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            parts = [node.annotation, node.value if alias else None]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        for part in parts:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def _unseen(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in _SEEN_BY_NO_RUN

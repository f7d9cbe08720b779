"""One element is one element: no number stands before a plural where it may be 1.

``counted`` says both. Found are f-strings in which a value is directly followed by a plural, or by
one word and a plural, and the same in the scripts of pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fabric.messages.telling.wording import counted

_ROOT: Final = Path(__file__).parents[1]

_AFTER: Final = re.compile(r" (?P<first>[a-z]+)(?: (?P<second>[a-z]+))?\b(?![/'])")
"""Rates, as ``cycles/s``, have decimals."""

_NO_NOUNS: Final = frozenset(
    """
    across always and are as at by for from has in into is it its less of on or s that than this
    times to was whichever with without
    arrives asks begins carries closes comes computes costs cuts defines describes divides does ends
    equals expects fails folds follows gets gives goes holds joins lets makes matches misses moves
    names needs pass passes raises reads returns says sends steers stores takes uses waits works
    """.split()  # noqa: SIM905 - a list of words
)
"""Behind which no plural stands, and what is none itself: verbs, seconds and factors."""

_NEVER_1: Final = {
    "cause.py: size": "what is taken of it is neither 0 nor all",
    "checked_operator.py: described(result)": "a clock out of range",
    "runtime.py: looks * _PERIOD_SECONDS": "several seconds",
    "check.py: short_text(size)": "a formula",
    "layout.py: list(self.trips)": "a list",
    "initial.py: type_.hits": "1 stands beside it",
    "addresses.py: self.stride": "less than 0",
    "row_functions.py: self.stride": "less than 0",
    "realise.py: len(demands)": "more than some FLOPs",
    "from_torch.py: func": "a function of PyTorch",
    "fusion.py: alone": "more than a budget",
    "experts.py: routing.hits": "more than 2",
    "zip.py: value.count": "more than 256",
    "elaborate.py: len(ports)": "more than 1",
    "lowering.py: count": "more than 256",
    "query_columns.py: late": "none, or 7 and more",
    "routing.py: tokens": "after batch=",
    "ragged_pairs.py: longest": "3, 8 and 16",
    "tile_headers.py: batch": "a batch of a table",
    "layers.py: total / 1000000.0": "millions with decimals",
    "figure_08.py: len(pairs)": "a correlation has several",
    "figure_10.py: len(seconds)": "all the artifact's",
    "figure_12.py: tiling": "a word",
    "figure_21.py: batch": "16 and 64",
    "claims.py: len(found)": "not 1, which is right",
    "memories.py: len(found)": "not 1, which is right",
    "memory_pictures.py: tiling": "a word",
    "memory_tables.py: static['tile_n']": "8 and more",
    "streamtensor_gpt2.py: energy": "with decimals",
    "streamtensor_gpt2.py: size": "32 and more",
}
"""Values before plurals that are not 1, and why."""


def _is_plural(text: str) -> bool:
    found = _AFTER.match(text)
    if found is None or found["first"] in _NO_NOUNS:
        return False
    first, second = found["first"], found["second"] or ""
    return first.endswith("s") or (second.endswith("s") and second not in _NO_NOUNS)


def _said_in_singular(tree: ast.AST) -> set[ast.AST]:
    """Return f-strings beside which one for 1 stands: ``... if count == 1 else f"..."``."""
    return {
        node.orelse
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp) and ast.unparse(node.test).endswith(" == 1")
    }


def _plurals(source: str) -> Iterator[str]:
    """Yield the values in f-strings that a plural follows."""
    tree = ast.parse(source)
    told = _said_in_singular(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or node in told:
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and _is_plural(str(text.value))
                and not ast.unparse(value.value).isupper()
            ):
                yield ast.unparse(value.value)


def test_python() -> None:
    """Every number that may be 1 is told by ``counted``, and the list above has no others."""
    found = {}
    for room in ("fabric", "operators", "programs"):
        for file in (_ROOT / room).rglob("*.py"):
            for value in _plurals(file.read_text(encoding="utf-8")):
                if not value.startswith("counted("):
                    found[f"{file.name}: {value}"] = file
    assert sorted(_NEVER_1) == sorted(found)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('f"{n} symbols"', True),
        ('f"{len(n):,} more reasons: --json"', True),
        ('f"of {n} cells"', True),
        ('f"{n} of {m} rows"', True),
        ("f\"{counted(n, 'cycle')} of runs\"", False),
        ('"1 loop" if n == 1 else f"{n} loops"', False),
        ('f"{MOST} bytes"', False),
        ('f"{name} waits for"', False),
        ('f"{rate} cycles/s"', False),
    ],
)
def test_rule(source: str, wrong: bool) -> None:
    """The rule finds what it is for."""
    assert wrong == bool(list(_plurals(source)))


def test_scripts() -> None:
    """So do the scripts of pages."""
    for file in (_ROOT / "fabric").rglob("*.js"):
        if not file.name.endswith(".min.js"):
            text = file.read_text(encoding="utf-8")
            assert [] == re.findall(r"\$\{number\([^`]*?\)\} [a-z]+s\b", text), file


def test_counted() -> None:
    """One is one."""
    assert ["0 boxes", "1 box", "2,000 boxes"] == [counted(each, "box") for each in (0, 1, 2000)]
    assert ["1 more reason", "3 more reasons"] == [counted(each, "more reason") for each in (1, 3)]

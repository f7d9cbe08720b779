"""No function is longer than a screen, but for loops that are compiled as one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LINES: Final = 60
"""Of a function's body, without its docstring."""

LOOPS: Final = {
    "fabric/timing/compiled/kernel.py:go_on",
    "fabric/analysis/placing/annealing_loop.py:anneal",
    "fabric/timing/retiming/timing_loop.py:blame",
    "fabric/timing/retiming/timing_loop.py:retime",
}
"""Their cases share thirty local variables, which a function of its own would have to be given."""

HARDWARE: Final = {
    "operators/rtl/memory.py:scatter",
    "operators/rtl/routing.py:intersect",
    "operators/rtl/routing.py:reassemble",
    "operators/rtl/routing.py:step",
    "operators/rtl/sequences.py:reshape",
    "operators/rtl/verilog.py:testbench",
}
"""A module's registers and what each is in the next cycle, or the text of a testbench."""


def test_functions() -> None:
    """None is longer but the known ones."""
    assert set() == set(_longer()) - LOOPS - HARDWARE


def _longer() -> Iterator[str]:
    for folder in ("fabric", "operators"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if _lines(node) > LINES:
                    yield f"{path.relative_to(ROOT).as_posix()}:{node.name}"


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    has_docstring = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[1 if has_docstring else 0]
    assert function.end_lineno is not None
    return function.end_lineno - first.lineno + 1

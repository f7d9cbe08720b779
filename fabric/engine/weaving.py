"""Functions made from others by adding statements: two bodies, one source.

A call costs more than what is added here; to write a body twice costs more still.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["woven"]

Function = TypeVar("Function")


class _Weaver(ast.NodeTransformer):
    """Puts statements before others, which are known by how they read."""

    def __init__(self, before: Mapping[str, str]) -> None:
        self.missing = {ast.unparse(ast.parse(at)): added for at, added in before.items()}

    def visit(self, node: ast.AST) -> Any:
        """Return ``node``, with what goes before it."""
        found = self.generic_visit(node)
        added = self.missing.pop(ast.unparse(node), None) if isinstance(node, ast.stmt) else None
        if added is None:
            return found
        return [*(ast.copy_location(each, node) for each in ast.parse(added).body), found]


def woven(function: Function, before: Mapping[str, str]) -> Function:
    """Return ``function`` with statements added, in the same place of the same file.

    Args:
        function: of a module or of a class.
        before: for statements of its body, as they read, those that go before the first such one.

    Raises:
        ValueError: a statement is not there.
    """
    assert isinstance(function, FunctionType)
    code = function.__code__
    weaver = _Weaver(before)
    tree = weaver.visit(ast.parse(textwrap.dedent(inspect.getsource(function))))
    if weaver.missing:
        at = ", ".join(weaver.missing)
        raise ValueError(f"{function.__qualname__} has no statement {at}: expected it in its body")
    ast.increment_lineno(ast.fix_missing_locations(tree), code.co_firstlineno - 1)
    names: dict[str, Function] = {}
    # What is compiled is the function's own text, and what its caller adds.
    exec(compile(tree, code.co_filename, "exec"), function.__globals__, names)
    return names[function.__name__]

"""The rule of channels for the database: its functions as macros of SQL."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Final

from fabric.engine.channel_rule import credit_part, set_out_at, visible_from

__all__ = ["MACROS"]

_SIGNS: Final = {ast.Add: "+", ast.Sub: "-"}
_NAMES: Final = {"max": "greatest", "min": "least"}


def _macro(rule: Callable[..., int]) -> str:
    """Return SQL for what a function of ``fabric.engine.channel_rule`` returns of its parameters.

    Such a function is one sum of integers, their maxima and minima.
    """
    (function,) = ast.parse(inspect.getsource(rule)).body
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    parameters = ", ".join(each.arg for each in function.args.args)
    return f"CREATE MACRO {function.name}({parameters}) AS {_sql(returned.value)};\n"


def _sql(value: ast.expr | None) -> str:
    match value:
        case ast.Name(id=name):
            return name
        case ast.BinOp():
            return f"({_sql(value.left)} {_SIGNS[type(value.op)]} {_sql(value.right)})"
        case ast.Call(func=ast.Name(id=name)):
            return f"{_NAMES[name]}({', '.join(map(_sql, value.args))})"
    raise NotImplementedError(ast.dump(value) if value else "nothing")


MACROS: Final = "".join(_macro(rule) for rule in (visible_from, set_out_at, credit_part))
"""Makes ``visible_from``, ``set_out_at`` and ``credit_part``."""

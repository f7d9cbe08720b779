"""What the library's pages make of docstrings: entries of several names, and what is no prose."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Final

import griffe

_TOGETHER: Final = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +\S.*)*)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Gives each name of ``a, b: text`` an entry.

    Functions that take the fields of a description as keywords are shown as Python's help has them.
    """

    def on_object(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Change the docstring of ``obj`` before it is parsed."""
        if isinstance(obj, griffe.Function) and any(
            str(each.value).startswith("taking(") for each in obj.decorators
        ):
            _take(obj)
        if obj.docstring is not None:
            obj.docstring.value = _TOGETHER.sub(_apart, obj.docstring.value)


def _take(function: griffe.Function) -> None:
    """Give ``function`` the parameters and the docstring that it has when it is called."""
    called = getattr(importlib.import_module(function.module.path), function.name)
    function.parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                each.name,
                annotation=str(each.annotation),
                kind=griffe.ParameterKind(each.kind.description),
                default=None if each.default is each.empty else repr(each.default),
            )
            for each in inspect.signature(called).parameters.values()
        )
    )
    if function.docstring is not None:
        function.docstring.value = inspect.getdoc(called) or ""


def _apart(found: re.Match[str]) -> str:
    indent, names, text = found.groups()
    return "\n".join(f"{indent}{name}: {text}" for name in names.split(", "))

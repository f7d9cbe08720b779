"""Changes docstrings for the library's pages: one entry for each name, and real signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, Final

import griffe

_TOGETHER: Final = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +\S.*)*)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Gives each name of ``a, b: text`` an entry, and ``taking`` functions their real signature."""

    def on_object(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Change the docstring of ``obj`` before it is parsed."""
        if isinstance(obj, griffe.Function) and any(
            str(decorator.value).startswith("taking(") for decorator in obj.decorators
        ):
            _take(obj)
        if obj.docstring is not None:
            obj.docstring.value = _TOGETHER.sub(_apart, obj.docstring.value)


def _take(function: griffe.Function) -> None:
    """Give ``function`` the parameters and the docstring that Python's help shows."""
    called = getattr(importlib.import_module(function.module.path), function.name)
    function.parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                parameter.name,
                annotation=str(parameter.annotation),
                kind=griffe.ParameterKind(parameter.kind.description),
                default=None if parameter.default is parameter.empty else repr(parameter.default),
            )
            for parameter in inspect.signature(called).parameters.values()
        )
    )
    if function.docstring is not None:
        function.docstring.value = inspect.getdoc(called) or ""


def _apart(entry: re.Match[str]) -> str:
    indent, names, text = entry.groups()
    return "\n".join(f"{indent}{name}: {text}" for name in names.split(", "))

"""What the library's pages make of docstrings: entries of several names, and what is no prose."""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

_TOGETHER: Final = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +\S.*)*)", re.MULTILINE)
_FAMILY: Final = re.compile(r"\n\nFamily:\n    .*\Z")


class Docstrings(griffe.Extension):
    """Gives each name of ``a, b: text`` an entry, and leaves families to the pages of operators."""

    def on_object(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Change the docstring of ``obj`` before it is parsed."""
        if obj.docstring is not None:
            text = _FAMILY.sub("", obj.docstring.value)
            obj.docstring.value = _TOGETHER.sub(_apart, text)


def _apart(found: re.Match[str]) -> str:
    indent, names, text = found.groups()
    return "\n".join(f"{indent}{name}: {text}" for name in names.split(", "))

"""What the docstring of a description says, section by section, and its parameters.

A docstring has a summary, perhaps more, and sections such as ``Shapes:``, ``Timing:``,
``Attributes:`` and ``Example:``. An example is written as at Python's prompt, with what it prints.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.graph.arguments.described import Described, field_checks

__all__ = [
    "Documentation",
    "Parameter",
    "documentation",
    "entries",
    "meanings",
    "parameters",
    "script",
]

_SECTION: Final = re.compile(r"^([A-Z][a-z]+):$", re.MULTILINE)
_WIDTH: Final = 88
_ENTRY: Final = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)


@dataclass(frozen=True)
class Documentation:
    """What a docstring says.

    Attributes:
        summary: its first sentence.
        details: what follows before the first section.
        sections: by title, each without its indentation.
    """

    summary: str
    details: str
    sections: Mapping[str, str]


@dataclass(frozen=True)
class Parameter:
    """A field of a description.

    Attributes:
        name: of the field.
        kind: what it takes, in words.
        default: as it is written; None where there is none.
        meaning: what the class, or the base it comes from, says of it.
    """

    name: str
    kind: str
    default: str | None
    meaning: str


def documentation(cls: type) -> Documentation:
    """Return what the docstring of ``cls`` says; that of its bases is theirs."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    if text.startswith(f"{cls.__name__}("):  # what a dataclass says of one without a docstring
        text = ""
    head, *rest = _SECTION.split(text)
    summary, _, details = head.strip().partition("\n\n")
    bodies = (inspect.cleandoc(f"\n{body}") for body in rest[1::2])
    return Documentation(
        " ".join(summary.split()), details.strip(), dict(zip(rest[::2], bodies, strict=True))
    )


def parameters(cls: type[Described]) -> Iterator[Parameter]:
    """Yield the parameters of ``cls`` in the order in which they are given."""
    said = meanings(cls)
    checks = dict(field_checks(cls))
    for name, parameter in inspect.signature(cls).parameters.items():
        kind = checks[name].text if name in checks else "anything"
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        yield Parameter(name, kind, default, said.get(name, ""))


def meanings(cls: type) -> dict[str, str]:
    """Return what ``cls``, or the base that they come from, says of its fields."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        found.update(entries(documentation(each).sections.get("Attributes", "")))
    return found


def entries(section: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a section explains, each with its text."""
    _, *found = _ENTRY.split(section)
    for names, text in zip(found[::2], found[1::2], strict=True):
        meaning = " ".join(text.split())
        for name in names.split(", "):
            yield name, meaning


def script(example: str, homes: Mapping[str, str]) -> str:
    """Return an example as a program that runs by itself, with what it prints in comments.

    Args:
        example: as at Python's prompt.
        homes: the module that each name is imported from.
    """
    steps = doctest.DocTestParser().get_examples(example)
    source = "".join(step.source for step in steps)
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    used = {node.id for node in names} - made
    lines = ["import numpy as np"] if "np" in used else []
    for home in sorted(set(homes.values())):
        imported = sorted(name for name in used if homes.get(name) == home)
        if imported:
            lines += _import(home, imported)
    lines.append("")
    for step in steps:
        lines += step.source.splitlines()
        lines += [f"# {line}" for line in step.want.splitlines()]
    return "\n".join(lines)


def _import(home: str, names: Sequence[str]) -> list[str]:
    line = f"from {home} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"from {home} import (", *(f"    {name}," for name in names), ")"]

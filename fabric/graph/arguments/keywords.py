"""Functions that take the fields of a description as keywords, and the parts of docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps

# Any: whatever the fields of a description take; they are checked.
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from fabric.graph.arguments.described import Binding, Described, checked, field_checks, refuse
from fabric.messages.errors import FabricError
from fabric.messages.users_code import users_values

Keywords = ParamSpec("Keywords")
First = TypeVar("First")
Taken = TypeVar("Taken")
Result = TypeVar("Result")

_SECTION: Final = re.compile(r"^([A-Z][a-z]+):$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)
_ARGUMENTS: Final = re.compile(r"^Args:\n((?:    .*\n?|\n(?=    ))*)", re.MULTILINE)
_LISTING_WIDTH: Final = 96
_DOCSTRING_WIDTH: Final = 88


@dataclass(frozen=True)
class Documentation:
    """The summary, the details and the sections (by title) of a docstring."""

    summary: str
    details: str
    sections: Mapping[str, str]


@dataclass(frozen=True)
class Parameter:
    """A field of a description: its name, type, default (None if required) and meaning."""

    name: str
    kind: str
    default: str | None
    meaning: str


def documentation(cls: type) -> Documentation:
    """Return the parsed docstring of ``cls``, without its bases."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    if text.startswith(f"{cls.__name__}("):  # a dataclass writes it if there is no docstring
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
    """Return the texts of the fields of ``cls`` and its bases."""
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
    """Return an example of the Python prompt as a program, with its output in comments."""
    import doctest  # with it comes all of unittest, and only the documentation asks for scripts

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
    if len(line) <= _DOCSTRING_WIDTH:
        return [line]
    return [f"from {home} import (", *(f"    {name}," for name in names), ")"]


def taking(
    kind: Callable[Keywords, Taken], without: Mapping[str, str] | None = None
) -> Callable[[Callable[[First, Taken], Result]], Callable[Concatenate[First, Keywords], Result]]:
    """Have a function take the fields of a description as keywords.

    Texts in the ``Args`` of the function precede the texts of the description.

    Args:
        kind: a frozen dataclass of keywords, each with a default.
        without: fields that are refused, with the reason.
    """
    refused = dict(without or {})
    described: Any = kind

    def decorate(
        function: Callable[[First, Taken], Result],
    ) -> Callable[Concatenate[First, Keywords], Result]:
        who, own = function.__name__, inspect.signature(function)
        first = next(iter(own.parameters.values()))
        fields = inspect.signature(described).parameters.values()
        signature = own.replace(
            parameters=[first, *(each for each in fields if each.name not in refused)]
        )
        binding, fitting = Binding(signature), checked(function)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Result:
            for name in refused.keys() & named:
                refuse(f"{who}: {name} is given: {refused[name]}: expected none")
            binding.check(who, args, named)
            about = args[0] if args else named.pop(first.name)
            with users_values():
                try:
                    taken = described(**named)
                except FabricError as error:
                    what = error.message.removeprefix(f"{described.__name__}: ")
                    raise type(error)(f"{who}: {what}", file=error.file, line=error.line) from None
                return fitting(about, taken)

        shown: Any = call
        shown.__signature__, shown.without = signature, refused
        shown.__doc__ = _text(function, described, signature, refused)
        taker: Callable[Concatenate[First, Keywords], Result] = call
        return taker

    return decorate


def _text(
    function: Callable[..., object],
    kind: type[Described],
    signature: inspect.Signature,
    refused: Mapping[str, str],
) -> str | None:
    if function.__doc__ is None:  # python -OO
        return None
    text = inspect.cleandoc(function.__doc__)
    found = _ARGUMENTS.search(text)
    assert found is not None
    said = meanings(kind) | dict(entries(textwrap.dedent(found[1])))
    lines = [
        textwrap.fill(
            f"{name}: {said.get(name, '')}",
            _LISTING_WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name in signature.parameters
    ]
    missing = "".join(f"It takes no ``{name}``: {why}.\n" for name, why in refused.items())
    part = "\n".join([*([missing] if missing else []), "Args:", *lines, ""])
    return f"{text[: found.start()]}{part}{text[found.end() :]}"

"""Installed and users' operators and functions, and the output of ``operators``."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final

from fabric.display.parts import Block, Sheet, Title, line
from fabric.graph.arguments.described import Described, lacks
from fabric.graph.arguments.keywords import (
    Documentation,
    Parameter,
    documentation,
    parameters,
    script,
)
from fabric.messages.errors import ProgramError
from fabric.messages.extras import check_extra

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program

_TABLE: Final = re.compile(r"\(Table (\d+)\)")
_SHOWN: Final = 5


@dataclass(frozen=True)
class Entry:
    """An operator or a function for programs, and its parsed docstring."""

    cls: type[Described]
    family: str
    text: Documentation

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def origin(self) -> str:
        """The line that imports the class, or the path of the user's file."""
        home = _homes().get(self.name)
        if home is not None and getattr(sys.modules[home], self.name) is self.cls:
            return f"from {home} import {self.name}"
        return str(sys.modules[self.cls.__module__].__file__)

    @property
    def call(self) -> str | None:
        """The streams that an operator is called with; None for a function."""
        if "__call__" not in self.cls.duties:
            return None
        streams = list(inspect.signature(self.cls.__call__).parameters.values())[1:]
        return str(inspect.Signature([each.replace(annotation=each.empty) for each in streams]))

    @property
    def example(self) -> str | None:
        """A complete program; None without an example."""
        text = self.text.sections.get("Example")
        return None if text is None else script(text, _homes())


def installed() -> list[Entry]:
    offered = {name: getattr(module, name) for module in _packages() for name in module.__all__}
    return _entries(offered.values())


def entries_of(module: ModuleType) -> list[Entry]:
    """Return the operators and functions of a user's file, at least one."""
    name = module.__name__
    own = _entries(x for x in vars(module).values() if getattr(x, "__module__", None) == name)
    if not own:
        raise ProgramError("defines no operator and no function", file=str(module.__file__))
    return own


def families(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """Return ``entries`` by family, tables of the paper first, sorted by name."""
    members: dict[str, list[Entry]] = {}
    for each in sorted(entries, key=lambda each: each.name):
        members.setdefault(each.family, []).append(each)
    return {family: members[family] for family in sorted(members, key=_order)}


def entry_named(name: str, entries: Iterable[Entry]) -> Entry:
    """Return the entry called ``name``, ignoring case, or raise an error with similar names."""
    lower = name.lower()
    by_name = {entry.name.lower(): entry for entry in entries}
    if lower in by_name:
        return by_name[lower]
    near = [by_name[text].name for text in difflib.get_close_matches(lower, by_name, _SHOWN)]
    near += [
        entry.name
        for text, entry in by_name.items()
        if entry.name not in near and (lower in text or lower in entry.text.summary.lower())
    ]
    hint = f"did you mean {', '.join(near[:_SHOWN])}?" if near else "see python -m fabric operators"
    raise ProgramError(f"{name}: there is no operator or function of that name: {hint}")


def _order(family: str) -> tuple[bool, int, str]:
    table = _TABLE.search(family)
    return table is None, int(table[1]) if table else 0, family


def _entries(offered: Iterable[object]) -> list[Entry]:
    classes = dict.fromkeys(
        each
        for each in offered
        if isinstance(each, type)
        and issubclass(each, Described)
        and not lacks(each)
        and not each.__name__.startswith("_")
    )
    families = [(each, getattr(each, "family", None)) for each in classes]
    return [Entry(each, family, documentation(each)) for each, family in families if family]


def _packages() -> list[ModuleType]:
    return list(map(importlib.import_module, ("fabric", "fabric.extend", "operators")))


@cache
def _homes() -> Mapping[str, str]:
    # If several packages export a name, its home is the first of them.
    return {name: module.__name__ for module in reversed(_packages()) for name in module.__all__}


def lowered(program: Program, rows: int, cols: int) -> Program:
    """Return ``program`` in physical pieces; see ``operators.pieces``."""
    pieces: Program = importlib.import_module("operators.pieces").in_pieces(program, rows, cols)
    return pieces


def hardware_modules() -> ModuleType:
    """Return ``operators.rtl.hardware``, if its libraries are installed."""
    check_extra("rtl", "rtl", "amaranth")
    return importlib.import_module("operators.rtl.hardware")


SECTIONS = ("Shapes", "Timing", "Memory")
_WIDEST = 100
_LEAST = 24
"""Least room for a text beside its name, in characters; with less, it is printed below."""


def families_sheet(entries: Iterable[Entry]) -> Sheet:
    for family, group in families(entries).items():
        yield Title(family)
        yield _named([(each.name, each.text.summary) for each in group])


def entry_sheet(entry: Entry) -> Sheet:
    call = f"{entry.name}{inspect.signature(entry.cls)}{entry.call or ''}"
    yield Block(lambda _: [call, f"{entry.family}: {entry.origin}"])
    for text in (entry.text.summary, *entry.text.details.split("\n\n")):
        if text:
            yield line()
            yield _wrapped(text)
    for title in SECTIONS:
        if title in entry.text.sections:
            yield Title(title.lower())
            yield _wrapped(entry.text.sections[title], "  ")
    rows = [(each.name, parameter_text(each)) for each in parameters(entry.cls)]
    if rows:
        yield Title("parameters")
        yield _named(rows)
    if entry.example is not None:
        example = textwrap.indent(entry.example, "  ").splitlines()
        yield Title("example")
        yield Block(lambda _: example)


def parameter_text(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f", by default {parameter.default}"
    if parameter.kind == "anything" and parameter.meaning:
        return f"{parameter.meaning}{default}"
    meaning = f"; {parameter.meaning}" if parameter.meaning else ""
    return f"{parameter.kind}{default}{meaning}"


def _named(rows: list[tuple[str, str]]) -> Block:
    """Return texts beside their names, or below them in a narrow terminal."""
    width = max(len(name) for name, _ in rows) + 4

    def lines(columns: int | None) -> Iterator[str]:
        for name, text in rows:
            if columns is None or width + _LEAST <= columns:
                yield from _lines(text, columns, " " * width, f"  {name}".ljust(width))
            else:
                yield from (f"  {name}", *_lines(text, columns, "    ", "    "))

    return Block(lambda columns: list(lines(columns)))


def _wrapped(text: str, indent: str = "") -> Block:
    return Block(lambda columns: _lines(text, columns, indent, indent))


def _lines(text: str, columns: int | None, indent: str, first: str) -> list[str]:
    plain = " ".join(text.replace("``", "`").split())
    return textwrap.wrap(
        plain,
        min(columns or _WIDEST, _WIDEST),
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    ) or [first.rstrip()]

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
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from fabric.graph.arguments.described import Described, lacks
from fabric.graph.arguments.keywords import (
    Documentation,
    Parameter,
    documentation,
    parameters,
    script,
)
from fabric.messages.errors import ConfigurationError, ProgramError

if TYPE_CHECKING:
    from fabric.graph.wiring.program import Program

_TABLE: Final = re.compile(r"\(Table (\d+)\)")
_SHOWN: Final = 5


@dataclass(frozen=True)
class Entry:
    """An operator or a function for programs, and its parsed docstring."""

    cls: type[Described]
    text: Documentation

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.cls.__name__

    @property
    def family(self) -> str:
        """The family, with the paper's table if it has one."""
        return next(_families(self.cls)).rstrip(".")

    @property
    def origin(self) -> str:
        """The import line, or a user's file."""
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
    """Return the public operators and functions of the installed packages."""
    offered = {name: getattr(module, name) for module in _packages() for name in module.__all__}
    return _entries(offered.values())


def entries_of(module: ModuleType) -> list[Entry]:
    """Return the operators and functions of a user's file, at least one."""
    own = _entries(each for each in vars(module).values() if _home(each) == module.__name__)
    if not own:
        raise ProgramError("defines no operator and no function", file=str(module.__file__))
    return own


def families(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """Return ``entries`` by family, tables of the paper first, sorted by name."""
    members: dict[str, list[Entry]] = {}
    for each in sorted(entries, key=lambda each: each.name):
        members.setdefault(each.family, []).append(each)
    return {family: members[family] for family in sorted(members, key=_order)}


def found(name: str, entries: Iterable[Entry]) -> Entry:
    """Return the entry called ``name``, ignoring case, or raise an error with similar names."""
    known = {each.name: each for each in entries}
    by_small = {each.lower(): each for each in known}
    if name.lower() in by_small:
        return known[by_small[name.lower()]]
    near = [by_small[each] for each in difflib.get_close_matches(name.lower(), by_small, _SHOWN)]
    near += [
        each.name
        for each in known.values()
        if each.name not in near
        and (name.lower() in each.name.lower() or name.lower() in each.text.summary.lower())
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
        and any(_families(each))
    )
    return [Entry(each, documentation(each)) for each in classes]


def _families(cls: type) -> Iterator[str]:
    for each in cls.__mro__:
        if family := documentation(each).sections.get("Family"):
            yield family


def _home(thing: object) -> str | None:
    return getattr(thing, "__module__", None)


def _packages() -> Iterator[ModuleType]:
    yield importlib.import_module("fabric")
    yield importlib.import_module("fabric.extend")
    yield importlib.import_module("operators")


@cache
def _homes() -> Mapping[str, str]:
    # The first of the packages that exports each name.
    homes: dict[str, str] = {}
    for module in _packages():
        for name in module.__all__:
            homes.setdefault(name, module.__name__)
    return MappingProxyType(homes)


def lowered(program: Program, rows: int, cols: int) -> Program:
    """Return ``program`` in physical pieces; see ``operators.pieces``."""
    pieces: Program = importlib.import_module("operators.pieces").in_pieces(program, rows, cols)
    return pieces


def hardware_modules() -> ModuleType:
    """Return ``operators.rtl.hardware``, if its libraries are installed."""
    try:
        return importlib.import_module("operators.rtl.hardware")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"rtl needs {error.name}, which is not installed: expected the extra rtl, as in "
            "pip install 'step-fabric[rtl]'"
        ) from None


SECTIONS = ("Shapes", "Timing", "Memory")
_WIDEST = 100
_LEAST = 24
"""Fewest characters of a text that is printed beside its name, not below it."""


def print_families(entries: Iterable[Entry], console: Console) -> None:
    """Print each family with its members and summaries."""
    members = families(entries)
    for number, (family, group) in enumerate(members.items()):
        if number:
            console.print()
        _print_title(family, console)
        _print_rows([(each.name, each.text.summary) for each in group], console)


def print_entry(entry: Entry, console: Console) -> None:
    """Print the documentation, parameters and example of an operator or a function."""
    call = f"{inspect.signature(entry.cls)}{entry.call or ''}"
    console.print(Text.assemble((entry.name, "bold"), call), soft_wrap=True)
    console.print(Text(f"{entry.family}: {entry.origin}", "dim"), soft_wrap=True)
    _print_paragraphs(entry.text.summary, console)
    _print_paragraphs(entry.text.details, console)
    for title in SECTIONS:
        if title in entry.text.sections:
            console.print()
            _print_title(title.lower(), console)
            _print_text(entry.text.sections[title], console, "  ")
    rows = [(each.name, parameter_text(each)) for each in parameters(entry.cls)]
    if rows:
        console.print()
        _print_title("parameters", console)
        _print_rows(rows, console)
    if entry.example is not None:
        console.print()
        _print_title("example", console)
        _print_lines(textwrap.indent(entry.example, "  ").splitlines(), console)


def parameter_text(parameter: Parameter) -> str:
    """Return the kind, the default and the meaning of a parameter."""
    default = "" if parameter.default is None else f", by default {parameter.default}"
    if parameter.kind == "anything" and parameter.meaning:
        return f"{parameter.meaning}{default}"
    meaning = f"; {parameter.meaning}" if parameter.meaning else ""
    return f"{parameter.kind}{default}{meaning}"


def _print_title(title: str, console: Console) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)


def _print_paragraphs(text: str, console: Console) -> None:
    for paragraph in filter(None, text.split("\n\n")):
        console.print()
        _print_text(paragraph, console)


def _print_rows(rows: list[tuple[str, str]], console: Console) -> None:
    width = max(len(name) for name, _ in rows) + 4
    beside = width + _LEAST <= console.width
    for name, text in rows:
        if beside:
            _print_text(text, console, " " * width, f"  {name}".ljust(width))
        else:
            _print_lines([f"  {name}"], console)
            _print_text(text, console, "    ")


def _print_text(text: str, console: Console, indent: str = "", first: str | None = None) -> None:
    plain = " ".join(text.replace("``", "`").split())
    _print_lines(
        textwrap.wrap(
            plain,
            min(console.width, _WIDEST),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        or [(first or "").rstrip()],
        console,
    )


def _print_lines(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(Text(line.rstrip()), soft_wrap=True)

"""The operators and functions there are: those that are installed, and those of a user's file."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final

from fabric.arguments.described import Described
from fabric.arguments.documented import Documentation, documentation, script
from fabric.arguments.helped import lacks
from fabric.telling.errors import ConfigurationError, ProgramError

if TYPE_CHECKING:
    from fabric.wiring.program import Program

__all__ = ["Entry", "entries_of", "families", "found", "hardware_modules", "installed", "lowered"]

_TABLE: Final = re.compile(r"\(Table (\d+)\)")
_SHOWN: Final = 5


@dataclass(frozen=True)
class Entry:
    """An operator or a function that programs can use.

    Attributes:
        cls: its class.
        text: what its docstring says.
    """

    cls: type[Described]
    text: Documentation

    @property
    def name(self) -> str:
        """Of the class."""
        return self.cls.__name__

    @property
    def family(self) -> str:
        """What it is one of, with the paper's table where it stands in one."""
        return next(_families(self.cls)).rstrip(".")

    @property
    def origin(self) -> str:
        """Where programs have it from: the line that imports it, or a user's file."""
        home = _homes().get(self.name)
        if home is not None and getattr(sys.modules[home], self.name) is self.cls:
            return f"from {home} import {self.name}"
        return str(sys.modules[self.cls.__module__].__file__)

    @property
    def call(self) -> str | None:
        """The streams that an operator is called with; None of a function."""
        if "__call__" not in dir(self.cls):
            return None
        call = next(vars(each)["__call__"] for each in self.cls.__mro__ if "__call__" in vars(each))
        streams = list(inspect.signature(call).parameters.values())[1:]
        return str(inspect.Signature([each.replace(annotation=each.empty) for each in streams]))

    @property
    def example(self) -> str | None:
        """A program that runs by itself; None where the docstring has none."""
        text = self.text.sections.get("Example")
        return None if text is None else script(text, _homes())


def installed() -> list[Entry]:
    """Return what the installed packages offer by name."""
    offered = {name: getattr(module, name) for module in _packages() for name in module.__all__}
    return _entries(offered.values())


def entries_of(module: ModuleType) -> list[Entry]:
    """Return what a user's file defines.

    Raises:
        ProgramError: that is nothing.
    """
    own = _entries(each for each in vars(module).values() if _home(each) == module.__name__)
    if not own:
        raise ProgramError("defines no operator and no function", file=str(module.__file__))
    return own


def families(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """Return ``entries`` by family, those of the paper's tables first, each sorted by name."""
    members: dict[str, list[Entry]] = {}
    for each in sorted(entries, key=lambda each: each.name):
        members.setdefault(each.family, []).append(each)
    return {family: members[family] for family in sorted(members, key=_order)}


def found(name: str, entries: Iterable[Entry]) -> Entry:
    """Return the entry called ``name``, in capitals or not.

    Raises:
        ProgramError: there is none; with those that are called alike, or say that they do it.
    """
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
    """Return those of ``offered`` that programs are built from: descriptions of some family."""
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
    """Yield what the class and its bases say they are one of, the nearest first."""
    for each in cls.__mro__:
        if family := documentation(each).sections.get("Family"):
            yield family


def _home(thing: object) -> str | None:
    return getattr(thing, "__module__", None)


def _packages() -> Iterator[ModuleType]:
    """Yield the packages that offer something, the lowest first."""
    yield importlib.import_module("fabric")
    yield importlib.import_module("fabric.extend")
    yield importlib.import_module("operators")


@cache
def _homes() -> Mapping[str, str]:
    """Return the package that each name is imported from: the lowest that has it."""
    homes: dict[str, str] = {}
    for module in _packages():
        for name in module.__all__:
            homes.setdefault(name, module.__name__)
    return MappingProxyType(homes)


def lowered(program: Program, rows: int, cols: int) -> Program:
    """Return ``program`` in physical pieces; see ``operators.pieces``."""
    found: Program = importlib.import_module("operators.pieces").in_pieces(program, rows, cols)
    return found


def hardware_modules() -> ModuleType:
    """Return what makes hardware of programs, ``operators.rtl.hardware``.

    Raises:
        ConfigurationError: what it is made with is not installed.
    """
    try:
        return importlib.import_module("operators.rtl.hardware")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"rtl needs {error.name}, which is not installed: expected the extra rtl, as in "
            "pip install 'step-fabric[rtl]'"
        ) from None

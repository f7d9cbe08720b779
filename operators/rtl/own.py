"""Hardware that users' classes provide, and the description of an operator for it.

A method ``hardware`` of an operator takes a ``Place``. Its module gets a name here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

# Any: users' classes and their results are inspected.
from typing import Any, Final, NamedTuple

from fabric import ProgramError, TileType, TupleType
from fabric.extend import ValueType, users_code
from operators.rtl.blocks import Unit
from operators.rtl.system_verilog import module_text
from operators.streams.reading import Types

_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9_]")


def stated(of: Any, *given: object) -> Any:
    """Return the result of an operator's or a function's method ``hardware``."""
    with users_code(f"{type(of).__name__}.hardware"):
        return of.hardware(*given)


def is_own(operator: Any) -> bool:
    """Whether an operator, or the function that it applies, provides its hardware."""
    applied = (getattr(operator, each, None) for each in ("function", "reduction", "split"))
    return any(hasattr(each, "hardware") for each in (operator, *applied))


class OwnModules:
    """Names of the modules that users' classes provide.

    A name has ASCII characters, digits and underscores after ``Own_``, so it is neither a Verilog
    keyword nor a module of the library. Different modules have different names, even if their
    classes have the same name or one class builds several.
    """

    def __init__(self) -> None:
        self._texts: Final[dict[str, str]] = {}

    def named(
        self, unit: str, module: str, build: Callable[[], Unit], ends: tuple[int, int]
    ) -> str:
        """Return the name for a module of ``unit``, with ``ends`` inputs and outputs.

        Raises:
            FabricError: ``build`` raised an error.
            ProgramError: its result is not such a unit.
        """
        with users_code(f"the hardware of {unit}"):
            built = build()
        if not isinstance(built, Unit):
            raise ProgramError(f"{unit}: its hardware is {built!r}: expected a Unit")
        base = f"Own_{_NO_LETTER.sub('_', module)}"
        text, _ = module_text(base, built.m, built.ports)
        found = len(built.inputs), len(built.outputs)
        if found != ends:
            raise ProgramError(
                f"{unit}: inputs and outputs of its hardware are {found[0]} and {found[1]}: "
                f"expected {ends[0]} and {ends[1]}, those with a channel"
            )
        others = (f"{base}_{number}" for number in itertools.count(2))
        names = itertools.chain([base], others)
        return next(each for each in names if self._texts.setdefault(each, text) == text)


Binding = tuple[str, Callable[[], Unit], dict[str, int]]
"""The name of a module, its builder, and the parameters of one instance."""


class Place(NamedTuple):
    """An operator with its streams.

    Attributes:
        name: of the operator.
        operator: the operator.
        inputs, outputs: the types of its streams.
        read: outputs that have a reader.
        bandwidth: bytes per cycle of an on-chip port.
        rate: FLOPs per cycle.
    """

    name: str
    operator: Any
    inputs: Types
    outputs: Types
    read: tuple[int, ...]
    bandwidth: int
    rate: int

    def refused(self, why: str) -> ProgramError:
        """Return the error for an operator without a module."""
        kind = type(self.operator).__name__
        return ProgramError(f"{self.name}: {kind} has no hardware module{why}")

    def items(self) -> list[list[ValueType]]:
        """Return the items in an element of each input: the two tiles of a tuple, or itself."""
        found = []
        for each in self.inputs:
            value = each.value
            items: list[ValueType] = list(value.items) if isinstance(value, TupleType) else [value]
            # The token of any other tuple is private to the functions that make and read it.
            if len(items) != 2 or not all(map(is_tile, items)):
                items = [value]
            found.append(items)
        return found

    def bytes_of(self, value: ValueType) -> int:
        """Return the bytes per number of a tile; 0 for other values."""
        if not isinstance(value, TileType):
            return 0
        size_bytes = value.dtype.itemsize
        if size_bytes > 16:
            raise self.refused(f" for {value.dtype}")
        return size_bytes


def is_tile(value: ValueType) -> bool:
    """Whether it is a tile of numbers other than integers."""
    return isinstance(value, TileType) and value.dtype.kind not in "iu"

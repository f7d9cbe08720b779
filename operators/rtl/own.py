"""Hardware that users' classes provide.

The method ``hardware`` of an operator takes a ``Place``, which describes the operator.
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

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def stated(of: Any, *arguments: object) -> Any:
    """Return the result of an operator's or a function's method ``hardware``."""
    with users_code(f"{type(of).__name__}.hardware"):
        return of.hardware(*arguments)


def is_own(operator: Any) -> bool:
    """Whether an operator, or the function that it applies, provides its hardware."""
    applied = (getattr(operator, name, None) for name in ("function", "reduction", "split"))
    return any(hasattr(each, "hardware") for each in (operator, *applied))


class OwnModules:
    """Names of the modules that users' classes provide.

    A name begins with ``Own_`` and has ASCII letters, digits and underscores. So it is neither a
    Verilog keyword nor a module of the library. Different modules have different names, even if
    their classes have the same name or one class builds several.
    """

    def __init__(self) -> None:
        self._texts: Final[dict[str, str]] = {}

    def named(
        self, unit: str, module: str, build: Callable[[], Unit], ends: tuple[int, int]
    ) -> str:
        """Return the name for a module of ``unit``, which must have ``ends`` inputs and outputs."""
        with users_code(f"the hardware of {unit}"):
            built = build()
        if not isinstance(built, Unit):
            raise ProgramError(f"{unit}: its hardware is {built!r}: expected a Unit")
        base = f"Own_{_NOT_IN_NAMES.sub('_', module)}"
        text, _ = module_text(base, built.m, built.ports)
        inputs, outputs = len(built.inputs), len(built.outputs)
        if (inputs, outputs) != ends:
            raise ProgramError(
                f"{unit}: inputs and outputs of its hardware are {inputs} and {outputs}: "
                f"expected {ends[0]} and {ends[1]}, those with a channel"
            )
        names = itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2)))
        return next(name for name in names if self._texts.setdefault(name, text) == text)


Binding = tuple[str, Callable[[], Unit], dict[str, int]]
"""The name of a module, its builder, and the parameters of one instance."""


class Place(NamedTuple):
    """An operator with its streams.

    Attributes:
        inputs, outputs: the types of its streams.
        read: the numbers of the outputs that have a reader.
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
        kind = type(self.operator).__name__
        return ProgramError(f"{self.name}: {kind} has no hardware module{why}")

    def items(self) -> list[list[ValueType]]:
        """Return the items of each input: two tiles for a tuple of two, otherwise one item.

        The token of any other tuple is private to the functions that make and read it.
        """
        values = [stream.value for stream in self.inputs]
        return [
            list(value.items)
            if isinstance(value, TupleType)
            and len(value.items) == 2
            and all(map(is_tile, value.items))
            else [value]
            for value in values
        ]

    def bytes_of(self, value: ValueType) -> int:
        """Return the bytes per number of a tile; 0 for other values."""
        if not isinstance(value, TileType):
            return 0
        size_bytes = value.dtype.itemsize
        if size_bytes > 16:
            raise self.refused(f" for {value.dtype}")
        return size_bytes


def is_tile(value: ValueType) -> bool:
    """Whether values are tiles of numbers other than integers."""
    return isinstance(value, TileType) and value.dtype.kind not in "iu"

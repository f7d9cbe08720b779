"""Hardware that users' classes state, and what is known of an operator where it stands.

What a method ``hardware`` is given is a ``Place``. What it returns is named here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

# Any: users' classes and what they return are looked at.
from typing import Any, Final, NamedTuple

from amaranth.back import rtlil

from fabric import ProgramError, TileType, TupleType
from fabric.extend import ValueType, users_code
from operators.rtl.blocks import Unit
from operators.streams.reading import Types

_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9_]")


def stated(of: Any, *given: object) -> Any:
    """Return what the method ``hardware`` of an operator or a function says.

    Raises:
        FabricError: it raised something.
    """
    with users_code(f"{type(of).__name__}.hardware"):
        return of.hardware(*given)


def is_own(operator: Any) -> bool:
    """Whether an operator, or the function that it applies, states its hardware itself."""
    applied = (getattr(operator, each, None) for each in ("function", "reduction", "split"))
    return any(hasattr(each, "hardware") for each in (operator, *applied))


class OwnModules:
    """Names of the modules that users' classes state.

    They are letters, digits and underscores behind ``Own_``, so that none is a word of Verilog or a
    module of the library. Modules that differ have different names, also where their classes have
    the same name or one class builds several.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._texts: Final[dict[str, str]] = {}

    def named(
        self, unit: str, module: str, build: Callable[[], Unit], ends: tuple[int, int]
    ) -> str:
        """Return the name for a module of ``unit``, which has so many inputs and outputs.

        Raises:
            FabricError: ``build`` raised something.
            ProgramError: it returns something else than such a unit.
        """
        with users_code(f"the hardware of {unit}"):
            built = build()
        if not isinstance(built, Unit):
            raise ProgramError(f"{unit}: its hardware is {built!r}: expected a Unit")
        text = text_of(built.m, built.ports, "own")
        found = len(built.inputs), len(built.outputs)
        if found != ends:
            raise ProgramError(
                f"{unit}: inputs and outputs of its hardware are {found[0]} and {found[1]}: "
                f"expected {ends[0]} and {ends[1]}, those with a channel"
            )
        base = f"Own_{_NO_LETTER.sub('_', module)}"
        others = (f"{base}_{number}" for number in itertools.count(2))
        names = itertools.chain([base], others)
        return next(each for each in names if self._texts.setdefault(each, text) == text)


def text_of(module: Any, signals: list[Any], name: str) -> str:
    """Return the register-transfer form of a module with these ports."""
    ports = [each.as_value() if hasattr(each, "as_value") else each for each in signals]
    return str(rtlil.convert(module, name=name, ports=ports, emit_src=False))


Binding = tuple[str, Callable[[], Unit], dict[str, int]]
"""The name of a module, what builds it, and the parameters of one instance."""


class Place(NamedTuple):
    """An operator where it stands.

    Attributes:
        name: its.
        operator: what it is.
        inputs, outputs: what its streams carry.
        read: outputs that have a reader.
        bandwidth: bytes a cycle of an on-chip port.
        rate: FLOPs a cycle.
    """

    name: str
    operator: Any
    inputs: Types
    outputs: Types
    read: tuple[int, ...]
    bandwidth: int
    rate: int

    def refused(self, why: str) -> ProgramError:
        """Return the error of an operator that no module stands for."""
        kind = type(self.operator).__name__
        return ProgramError(f"{self.name}: {kind} has no hardware module{why}")

    def items(self) -> list[list[ValueType]]:
        """Return what an element of each input has in it: the two tiles of a tuple, or itself."""
        found = []
        for each in self.inputs:
            value = each.value
            items: list[ValueType] = list(value.items) if isinstance(value, TupleType) else [value]
            # The token of any other tuple says what the functions that make and read it say.
            if len(items) != 2 or not all(map(is_tile, items)):
                items = [value]
            found.append(items)
        return found

    def bytes_of(self, value: ValueType) -> int:
        """Return the bytes of one number of a tile; 0 of anything else."""
        if not isinstance(value, TileType):
            return 0
        size_bytes = value.dtype.itemsize
        if size_bytes > 16:
            raise self.refused(f" for {value.dtype}")
        return size_bytes


def is_tile(value: ValueType) -> bool:
    """Whether it is a tile of numbers that are no integers."""
    return isinstance(value, TileType) and value.dtype.kind not in "iu"

"""What a channel carries besides the data of a tile: what the time of operators depends on."""

from __future__ import annotations

from typing import Any, Final

from amaranth import Module, Signal
from amaranth.lib import data

__all__ = [
    "BITS",
    "CONTROL_BITS",
    "FIELDS",
    "LEVEL_BITS",
    "SIZE_BITS",
    "Second",
    "Token",
    "changed",
    "packed",
    "second",
    "token",
]

LEVEL_BITS: Final = 5
SIZE_BITS: Final = 20
CONTROL_BITS: Final = 128

FIELDS: Final = {
    "level": LEVEL_BITS,
    "bare": 1,
    "empty": LEVEL_BITS,
    "rows": SIZE_BITS,
    "cols": SIZE_BITS,
    "valid_rows": SIZE_BITS,
    "valid_cols": SIZE_BITS,
    "in_memory": 1,
    "control": CONTROL_BITS,
}
"""Bits of each field, lowest first.

``level`` is that of the stop, ``bare`` says that there is no value and ``empty`` which dimension is
empty then; ``control`` is a selector, one bit for each of its consumers, or a number, or of a tuple
of two tiles the second one, or of a buffer how many tiles its outermost dimension has.
"""

Token: Final = data.StructLayout(FIELDS)
Second: Final = data.StructLayout(
    {name: FIELDS[name] for name in ("rows", "cols", "valid_rows", "valid_cols", "in_memory")}
)
"""The second tile of a tuple, in ``control``."""

BITS: Final = sum(FIELDS.values())

# Any: amaranth has no types; a token is a view of a signal.


def token(name: str) -> Any:
    """Return a signal that is a token."""
    return Signal(Token, name=name)


def second(of: Any) -> Any:
    """Return the second tile of a tuple."""
    return data.View(Second, of.control[: Second.size])


def packed(**fields: int) -> int:
    """Return the bits of a token; fields that are not said are 0.

    Raises:
        ValueError: one does not fit.
    """
    bits, at = 0, 0
    for name, width in FIELDS.items():
        value = fields.pop(name, 0)
        if not 0 <= value < 1 << width:
            raise ValueError(f"{name} is {value}: expected 0 to {(1 << width) - 1}")
        bits |= value << at
        at += width
    assert not fields, fields
    return bits


def changed(m: Module, source: Any, name: str, **fields: Any) -> Any:
    """Return ``source`` with other ``fields``."""
    result = token(name)
    m.d.comb += result.eq(source)
    for field, value in fields.items():
        m.d.comb += getattr(result, field).eq(value)
    return result

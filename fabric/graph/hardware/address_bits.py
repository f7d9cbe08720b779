"""Which bits of an address say what: the mappings of ``[hbm] mapping``, by name or as a list.

A list has the fields from the lowest bit on that is above those within a request::

    ["channel ^ above", "column:1", "pseudo_channel", "bank_group:2 ^ row[0:2]", "bank", "column",
     "row"]

* ``column:1`` are so many of the bits of a field, the lowest ones that stand nowhere before;
  ``column`` alone are all that are left of it. The last one is the row, which has 31 bits.
* ``unused:3`` are bits that say nothing.
* ``^ row[0:2]``: each bit xor one of these, those of another field from 0 up to 2, without 2, as
  they stand in the address; ``^ above``: xor all bits above, in groups as wide as the piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import xor
from typing import Final, NamedTuple, TypeAlias

from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted, one_of

__all__ = ["REQUEST_NUMBER_BITS", "Widths", "address_bits"]

_FIELDS: Final = ("channel", "pseudo_channel", "bank_group", "bank", "column", "row")

REQUEST_NUMBER_BITS: Final = 56
"""Of an address, above the bits within a request."""

_ROW_BITS: Final = 31
"""As many as have room in a packed location."""

Widths: TypeAlias = Mapping[str, int]
"""The bits of each field but the row."""

_PIECE: Final = re.compile(r"(?P<field>\w+)(?::(?P<width>\d+))?")
_SOURCE: Final = re.compile(r"above|(?P<field>\w+)\[(?P<first>\d+):(?P<end>\d+)\]")


class _Piece(NamedTuple):
    """Consecutive bits of an address, from ``low`` on, that are bits of a field, xor others."""

    text: str
    field: str
    low: int
    width: int
    sources: tuple[str, ...]


def _interleaved(widths: Widths) -> tuple[str, ...]:
    group, bank = widths["bank_group"], widths["bank_group"] + widths["bank"]
    return (
        "channel",
        f"pseudo_channel ^ row[{bank}:{bank + widths['pseudo_channel']}]",
        f"bank_group ^ row[0:{group}]",
        "column",
        f"bank ^ row[{group}:{bank}]",
        "row",
    )


def _interleaved_with_hash(widths: Widths) -> tuple[str, ...]:
    return ("channel ^ above", *_interleaved(widths)[1:])


def _row_bank_rank_column_channel(_widths: Widths) -> tuple[str, ...]:
    return ("channel", "column", "pseudo_channel", "bank_group", "bank", "row")


_NAMED: Final[dict[str, Callable[[Widths], tuple[str, ...]]]] = {
    "interleaved": _interleaved,
    "interleaved with hash": _interleaved_with_hash,
    "row-bank-rank-column-channel": _row_bank_rank_column_channel,
}


def address_bits(mapping: str | tuple[str, ...], widths: Widths) -> dict[str, tuple[int, ...]]:
    """Return, for each field, its bits from the lowest on: which bits of an address they xor.

    Args:
        mapping: a name, or pieces from the lowest bit on.
        widths: of the fields but the row.

    Returns:
        Of each bit of each field a mask: bit n is bit n of the number of the request.

    Raises:
        ConfigurationError: the mapping cannot be read, drops a bit or repeats one.
    """
    if isinstance(mapping, str):
        if mapping not in _NAMED:
            names = one_of([repr(name) for name in _NAMED], repr(mapping))
            raise ConfigurationError(
                f"mapping is {mapping!r}: expected a list of bit fields, or {names}"
            )
        mapping = _NAMED[mapping](widths)
    pieces = _pieces(mapping, widths)
    placed: dict[str, list[int]] = {field: [] for field in _FIELDS}
    used = 0
    for piece in pieces:
        if piece.field != "unused":
            bits = [1 << (piece.low + bit) for bit in range(piece.width)]
            placed[piece.field] += bits
            used |= sum(bits)
    masks: dict[str, list[int]] = {field: [] for field in _FIELDS}
    for piece in pieces:
        if piece.field != "unused":
            of_piece = [1 << (piece.low + bit) for bit in range(piece.width)]
            for source in piece.sources:
                of_piece = list(map(xor, of_piece, _source(source, piece, placed, used)))
            masks[piece.field] += of_piece
    found = {field: tuple(each) for field, each in masks.items()}
    _check_distinct(found)
    return found


def _pieces(mapping: tuple[str, ...], widths: Widths) -> list[_Piece]:
    """Return the pieces of a list, whose fields have as many bits together as they should."""
    if not mapping:
        raise ConfigurationError("mapping is empty: expected bit fields, the last one row")
    stated = [_read(text) for text in mapping]
    if stated[-1][:2] != ("row", None):
        raise ConfigurationError(
            f"mapping ends with {mapping[-1]!r}: expected row, which takes the bits above"
        )
    open_ = [field for field, width, _ in stated if width is None]
    for field in open_:
        if open_.count(field) > 1:
            raise ConfigurationError(
                f"mapping has {field} {counted(open_.count(field), 'time')} without a number "
                f"of bits: "
                "expected one that takes what the others leave"
            )
    all_ = {**widths, "row": _ROW_BITS}
    left = {
        field: bits - sum(width or 0 for each, width, _ in stated if each == field)
        for field, bits in all_.items()
    }
    for field, bits in left.items():
        if bits < 0 or (bits > 0 and field not in open_):
            does = "drops" if bits > 0 else "repeats"
            raise ConfigurationError(
                f"mapping {does} {_bits(abs(bits))} of {field}: found {all_[field] - bits} in "
                f"all, expected {all_[field]}"
            )
    pieces, low = [], 0
    for text, (field, width, sources) in zip(mapping, stated, strict=True):
        room = REQUEST_NUMBER_BITS - low
        pieces.append(
            _Piece(text, field, low, min(left[field], room) if width is None else width, sources)
        )
        low += pieces[-1].width
    if pieces[-1].low >= REQUEST_NUMBER_BITS:
        raise ConfigurationError(
            f"mapping has {_bits(pieces[-1].low)} below the row: "
            f"expected fewer than {REQUEST_NUMBER_BITS}"
        )
    return pieces


def _read(text: str) -> tuple[str, int | None, tuple[str, ...]]:
    """Return the field of a piece, its width where it has one, and what it is xored with."""
    first, *sources = [each.strip() for each in text.split("^")]
    match = _PIECE.fullmatch(first)
    if match is None:
        raise ConfigurationError(
            f"mapping has {text!r}: expected FIELD:BITS or FIELD, as in column:4 and row, "
            "and what it is xored with"
        )
    field, width = match["field"], match["width"]
    if field != "unused":
        _check_field(field, text)
    elif width is None:
        raise ConfigurationError(
            f"mapping has {text!r}: expected how many bits are unused, as in unused:3"
        )
    return field, None if width is None else int(width), tuple(sources)


def _source(text: str, piece: _Piece, placed: dict[str, list[int]], used: int) -> list[int]:
    """Return the bits that ``text`` stands for, in groups as wide as the piece."""
    match = _SOURCE.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"mapping has {piece.text!r}, xor {text!r}: expected above, or bits of a field, as in "
            "row[0:2]"
        )
    if text == "above":
        end = piece.low + piece.width
        above = [1 << bit for bit in range(end, REQUEST_NUMBER_BITS) if used >> bit & 1]
        return [sum(above[bit :: piece.width]) for bit in range(piece.width)]
    _check_field(match["field"], piece.text)
    first, end, there = int(match["first"]), int(match["end"]), placed[match["field"]]
    if end - first != piece.width:
        raise ConfigurationError(
            f"mapping has {piece.text!r}, {_bits(piece.width)} xor {max(end - first, 0)}: "
            "expected as many"
        )
    if end > len(there):
        raise ConfigurationError(
            f"mapping has {piece.text!r}: expected bits of the {len(there)} of {match['field']}"
        )
    return there[first:end]


def _check_field(field: str, text: str) -> None:
    if field not in _FIELDS:
        raise ConfigurationError(
            f"mapping has no field {field} (found {text!r}): "
            f"expected {one_of([*_FIELDS, 'unused'], field)}"
        )


def _check_distinct(masks: dict[str, tuple[int, ...]]) -> None:
    """Refuse masks that give two addresses one place: those of which one follows from others."""
    leading: dict[int, int] = {}
    for field, each in masks.items():
        for bit, mask in enumerate(each):
            rest = mask
            while rest.bit_length() in leading:
                rest ^= leading[rest.bit_length()]
            if not rest:
                raise ConfigurationError(
                    f"mapping repeats a bit: bit {bit} of {field} follows from those of other "
                    "fields by what they are xored with"
                )
            leading[rest.bit_length()] = rest


def _bits(count: int) -> str:
    return f"{count} bit{'' if count == 1 else 's'}"

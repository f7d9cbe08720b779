"""DRAM: the timing of a channel, presets, and mappings of address bits to fields.

The presets are from Ramulator 2.1 (CMU-SAFARI, 2026): JESD235 for HBM2, JESD238 for HBM3.

A mapping lists fields from the lowest bit above the request size::

    ["channel ^ above", "column:1", "pseudo_channel", "bank_group:2 ^ row[0:2]", "bank", "column",
     "row"]

* ``column:1`` is the lowest unused bit of a field, ``column`` all its remaining bits. The row is
  last, and has 31 bits.
* ``unused:3`` skips three bits.
* ``^ row[0:2]`` xors the two bits of a field with bits 0 and 1 of the row. ``^ above`` xors a
  field with all higher used bits, in groups of the field's width.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import xor
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Never,
    NoReturn,
    TypeAlias,
    TypeVar,
    get_args,
)

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted, one_of

_FIELDS: Final = ("channel", "pseudo_channel", "bank_group", "bank", "column", "row")

REQUEST_NUMBER_BITS: Final = 56
"""Bits of a request's number, which is an address without the bits within a request."""

_ROW_BITS: Final = 31
"""Bits of the row in a packed location."""

Widths: TypeAlias = Mapping[str, int]
"""The bits of each field except the row."""

_PIECE: Final = re.compile(r"(?P<field>\w+)(?::(?P<width>\d+))?")

_SOURCE: Final = re.compile(r"above|(?P<field>\w+)\[(?P<first>\d+):(?P<end>\d+)\]")


Count: TypeAlias = Annotated[int, Bounds(1, 2**20)]
Cycles: TypeAlias = Annotated[int, Bounds(0, 2**20)]
Banks: TypeAlias = Annotated[int, Bounds(1, 2**5)]

Unstated = TypeVar("Unstated", bound=NoneType)  # type: ignore[nonetype-type]
"""``None`` if a preset may supply missing values, ``Never`` if all values are stated.

The bound is a class, since values are checked against it at run time.
"""

_OF_PRESET: Final[Any] = None


@dataclass(frozen=True, kw_only=True)
class DramDescription(Section, Generic[Unstated]):
    """The organization of a channel, and the cycles between its commands, with names of JEDEC.

    Attributes:
        pseudo_channels: each with its data bus; they share the command slots.
        bank_groups: in a pseudo channel.
        banks: in a bank group.
        row_bytes: in a row of a bank.
        burst_bytes: moved by one command.
        burst_cycles: of a burst on the data bus of a pseudo channel (BL).
        cl_cycles, cwl_cycles: from a read or a write to its data.
        rcd_read_cycles, rcd_write_cycles: from an activation to a read or a write.
        rp_cycles: from a precharge to an activation in the same bank.
        ras_cycles: from an activation to a precharge in the same bank.
        rc_cycles: between activations in one bank.
        wr_cycles: from the end of written data to a precharge.
        rtp_cycles: from a read to a precharge.
        ccd_s_cycles, ccd_l_cycles: between reads, or writes, in different or the same bank group.
        rrd_s_cycles, rrd_l_cycles: between activations in different or the same bank group.
        wtr_s_cycles, wtr_l_cycles: from written data to a read in different or the same bank group.
        faw_cycles: a pseudo channel activates at most four rows in this time.
        rfc_cycles: of a refresh of all banks.
        refi_cycles: between two refreshes.
    """

    pseudo_channels: Banks | Unstated = _OF_PRESET
    bank_groups: Banks | Unstated = _OF_PRESET
    banks: Banks | Unstated = _OF_PRESET
    row_bytes: Count | Unstated = _OF_PRESET
    burst_bytes: Count | Unstated = _OF_PRESET
    burst_cycles: Count | Unstated = _OF_PRESET
    cl_cycles: Cycles | Unstated = _OF_PRESET
    cwl_cycles: Cycles | Unstated = _OF_PRESET
    rcd_read_cycles: Cycles | Unstated = _OF_PRESET
    rcd_write_cycles: Cycles | Unstated = _OF_PRESET
    rp_cycles: Cycles | Unstated = _OF_PRESET
    ras_cycles: Cycles | Unstated = _OF_PRESET
    rc_cycles: Cycles | Unstated = _OF_PRESET
    wr_cycles: Cycles | Unstated = _OF_PRESET
    rtp_cycles: Cycles | Unstated = _OF_PRESET
    ccd_s_cycles: Count | Unstated = _OF_PRESET
    ccd_l_cycles: Count | Unstated = _OF_PRESET
    rrd_s_cycles: Count | Unstated = _OF_PRESET
    rrd_l_cycles: Count | Unstated = _OF_PRESET
    wtr_s_cycles: Cycles | Unstated = _OF_PRESET
    wtr_l_cycles: Cycles | Unstated = _OF_PRESET
    faw_cycles: Cycles | Unstated = _OF_PRESET
    rfc_cycles: Cycles | Unstated = _OF_PRESET
    refi_cycles: Count | Unstated = _OF_PRESET


PresetName: TypeAlias = Literal[
    "HBM2 1600 Mbps", "HBM2 2000 Mbps", "HBM2 2400 Mbps", "HBM3 6400 Mbps"
]

# A cycle is 1.25, 1, 0.833 and 0.625 nanoseconds.
_PARAMETERS: Final = {
    "pseudo_channels": (2, 2, 2, 2),
    # HBM3 has 4 groups in each of two stack identifiers.
    "bank_groups": (4, 4, 4, 8),
    "banks": (4, 4, 4, 4),
    "row_bytes": (1024, 1024, 1024, 1024),
    "burst_bytes": (32, 32, 32, 32),
    "burst_cycles": (2, 2, 2, 2),
    "cl_cycles": (10, 14, 17, 20),
    "cwl_cycles": (4, 5, 6, 10),
    "rcd_read_cycles": (10, 14, 17, 31),
    "rcd_write_cycles": (8, 12, 14, 15),
    "rp_cycles": (10, 14, 17, 26),
    "ras_cycles": (24, 34, 40, 45),
    "rc_cycles": (34, 48, 57, 72),
    "wr_cycles": (12, 16, 19, 33),
    "rtp_cycles": (4, 5, 6, 9),
    "ccd_s_cycles": (2, 2, 2, 2),
    "ccd_l_cycles": (4, 4, 4, 4),
    "rrd_s_cycles": (4, 4, 5, 4),
    "rrd_l_cycles": (4, 4, 5, 5),
    "wtr_s_cycles": (5, 6, 8, 7),
    "wtr_l_cycles": (6, 8, 10, 10),
    "faw_cycles": (12, 15, 19, 24),
    "rfc_cycles": (280, 350, 421, 560),
    "refi_cycles": (3120, 3900, 4682, 6240),
}

PRESETS: Final[dict[str, DramDescription[Never]]] = {
    name: DramDescription(**dict(zip(_PARAMETERS, values, strict=True)))
    for name, values in zip(
        get_args(PresetName), zip(*_PARAMETERS.values(), strict=True), strict=True
    )
}
"""The presets of ``[hbm] preset``."""


class _Piece(NamedTuple):
    """Consecutive bits of an address from bit ``low``: a field, xored with ``sources``."""

    text: str
    field: str
    low: int
    width: int
    sources: tuple[str, ...]

    @property
    def bits(self) -> list[int]:
        return [1 << (self.low + bit) for bit in range(self.width)]


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


_IN_TURN: Final = ("channel", "column", "pseudo_channel", "bank_group", "bank", "row")

_NAMED: Final[dict[str, Callable[[Widths], tuple[str, ...]]]] = {
    "interleaved": _interleaved,
    "interleaved with hash": lambda widths: ("channel ^ above", *_interleaved(widths)[1:]),
    "row-bank-rank-column-channel": lambda _: _IN_TURN,
}


def address_bits(mapping: str | tuple[str, ...], widths: Widths) -> dict[str, tuple[int, ...]]:
    """Return, for each bit of each field, a mask of the bits of the request number to xor."""
    if isinstance(mapping, str):
        if mapping not in _NAMED:
            names = one_of([repr(name) for name in _NAMED], repr(mapping))
            _refuse(f"is {mapping!r}", f"a list of bit fields, or {names}")
        mapping = _NAMED[mapping](widths)
    pieces = [piece for piece in _pieces(mapping, widths) if piece.field != "unused"]
    placed: dict[str, list[int]] = {field: [] for field in _FIELDS}
    for piece in pieces:
        placed[piece.field] += piece.bits
    used = sum(map(sum, placed.values()))
    masks: dict[str, list[int]] = {field: [] for field in _FIELDS}
    for piece in pieces:
        bits = piece.bits
        for source in piece.sources:
            bits = list(map(xor, bits, _source(source, piece, placed, used)))
        masks[piece.field] += bits
    field_masks = {field: tuple(bits) for field, bits in masks.items()}
    _check_distinct(field_masks)
    return field_masks


def _pieces(mapping: tuple[str, ...], widths: Widths) -> list[_Piece]:
    if not mapping:
        _refuse("is empty", "bit fields that end with row")
    stated = [_read(text) for text in mapping]
    if stated[-1][:2] != ("row", None):
        _refuse(f"ends with {mapping[-1]!r}", "row, which takes the bits above")
    open_ = [field for field, width, _ in stated if width is None]
    for field in open_:
        if open_.count(field) > 1:
            times = counted(open_.count(field), "time")
            found = f"has {field} {times} without a number of bits"
            _refuse(found, "one such entry, for the remaining bits")
    wanted = {**widths, "row": _ROW_BITS}
    left = {
        field: bits - sum(width or 0 for name, width, _ in stated if name == field)
        for field, bits in wanted.items()
    }
    for field, bits in left.items():
        if bits < 0 or (bits > 0 and field not in open_):
            does = "drops" if bits > 0 else "repeats"
            found = f"{does} {counted(abs(bits), 'bit')} of {field} (found {wanted[field] - bits})"
            _refuse(found, f"{wanted[field]} in all")
    pieces, low = [], 0
    for text, (field, width, sources) in zip(mapping, stated, strict=True):
        room = REQUEST_NUMBER_BITS - low
        pieces.append(
            _Piece(text, field, low, min(left[field], room) if width is None else width, sources)
        )
        low += pieces[-1].width
    if pieces[-1].low >= REQUEST_NUMBER_BITS:
        found = f"has {counted(pieces[-1].low, 'bit')} below the row"
        _refuse(found, f"fewer than {REQUEST_NUMBER_BITS}")
    return pieces


def _read(text: str) -> tuple[str, int | None, tuple[str, ...]]:
    first, *sources = [part.strip() for part in text.split("^")]
    match = _PIECE.fullmatch(first)
    if match is None:
        forms = "FIELD:BITS or FIELD, as in column:4 and row, and bits to xor"
        _refuse(f"has {text!r}", forms)
    field, width = match["field"], match["width"]
    if field != "unused":
        _check_field(field, text)
    elif width is None:
        _refuse(f"has {text!r}", "the number of unused bits, as in unused:3")
    return field, None if width is None else int(width), tuple(sources)


def _source(text: str, piece: _Piece, placed: dict[str, list[int]], used: int) -> list[int]:
    match = _SOURCE.fullmatch(text)
    if match is None:
        found = f"has {piece.text!r}, xor {text!r}"
        _refuse(found, "above, or bits of a field, as in row[0:2]")
    if text == "above":
        end = piece.low + piece.width
        above = [1 << bit for bit in range(end, REQUEST_NUMBER_BITS) if used >> bit & 1]
        return [sum(above[bit :: piece.width]) for bit in range(piece.width)]
    _check_field(match["field"], piece.text)
    first, end, field_bits = int(match["first"]), int(match["end"]), placed[match["field"]]
    if end - first != piece.width:
        bits = f"{counted(piece.width, 'bit')} xor {max(end - first, 0)}"
        _refuse(f"has {piece.text!r}, {bits}", "equal numbers of bits")
    if end > len(field_bits):
        _refuse(f"has {piece.text!r}", f"bits of the {len(field_bits)} of {match['field']}")
    return field_bits[first:end]


def _check_field(field: str, text: str) -> None:
    if field not in _FIELDS:
        _refuse(f"has no field {field} (found {text!r})", one_of([*_FIELDS, "unused"], field))


def _check_distinct(masks: dict[str, tuple[int, ...]]) -> None:
    """Refuse linearly dependent masks, which map two addresses to one location."""
    leading: dict[int, int] = {}
    for field, field_masks in masks.items():
        for bit, mask in enumerate(field_masks):
            rest = mask
            while rest.bit_length() in leading:
                rest ^= leading[rest.bit_length()]
            if not rest:
                why = f"bit {bit} of {field} follows from xored bits of other fields"
                _refuse(f"repeats a bit: {why}", "independent bits")
            leading[rest.bit_length()] = rest


def _refuse(found: str, expected: str) -> NoReturn:
    raise ConfigurationError(f"mapping {found}: expected {expected}")

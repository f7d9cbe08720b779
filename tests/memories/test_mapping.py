from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.graph.hardware.memory_models import BankedDescription
from fabric.messages.errors import ConfigurationError
from tests.memories.commands import Location, locations

FIELDS = ("channel", "pseudo_channel", "bank_group", "bank", "column")
NAMES = ("interleaved", "interleaved with hash", "row-bank-rank-column-channel")
SMALL = {"channels": 4, "pseudo_channels": 2, "bank_groups": 4, "banks": 2, "row_bytes": 256}
# An address of SMALL, with requests of 64 bytes.
BITS = dict(zip(FIELDS, (2, 1, 2, 1, 2), strict=True))

Bits = list[int]


class _Piece(NamedTuple):
    field: str
    width: int
    text: str
    xored: tuple[str, int] | None


def _bits(number: int, count: int) -> Bits:
    return [number >> bit & 1 for bit in range(count)]


def _number(bits: Bits) -> int:
    return sum(bit << place for place, bit in enumerate(bits))


def _defined(pieces: list[_Piece], number: int) -> dict[str, int]:
    address = _bits(number, 56)
    starts = list(accumulate((piece.width for piece in pieces), initial=0))
    taken = [
        (piece, address[start : start + piece.width], start)
        for piece, start in zip(pieces, starts, strict=False)
    ]
    dropped = [
        start + bit
        for piece, _, start in taken
        if piece.field == "unused"
        for bit in range(piece.width)
    ]
    end = starts[-1]
    plain: dict[str, Bits] = {}
    for piece, bits, _ in taken:
        plain[piece.field] = plain.get(piece.field, []) + bits
    found: dict[str, Bits] = {}
    for piece, bits, start in taken:
        own = list(bits)
        if piece.xored is not None and piece.width:
            field, first = piece.xored
            if field == "above":
                places = [each for each in range(start + piece.width, end) if each not in dropped]
                for nth, place in enumerate(places):
                    own[nth % piece.width] ^= address[place]
            else:
                others = plain[field][first : first + piece.width]
                own = [bit ^ other for bit, other in zip(own, others, strict=True)]
        found[piece.field] = found.get(piece.field, []) + own
    found.pop("unused", None)
    return {field: _number(bits) for field, bits in found.items()}


@st.composite
def _mappings(draw: st.DrawFn) -> list[_Piece]:
    parts = []
    for field, bits in [*BITS.items(), ("row", draw(st.integers(0, 3)))]:
        while bits:
            width = draw(st.integers(1, bits))
            parts.append((field, width))
            bits -= width  # noqa: PLW2901 - what is left of them
    parts += [("unused", width) for width in draw(st.lists(st.integers(1, 3), max_size=2))]
    lower = draw(st.permutations(parts))
    pieces = []
    for field, width in lower:
        xored: tuple[str, int] | None = None
        text = f"{field}:{width}"
        if field != "unused" and draw(st.booleans()):
            other = draw(st.sampled_from(["above", "row", *FIELDS]))
            most = 10 if other == "row" else BITS.get(other, 10) - width
            if most >= 0:
                xored = other, draw(st.integers(0, most))
                first, end = xored[1], xored[1] + width
                text += " ^ above" if other == "above" else f" ^ {other}[{first}:{end}]"
        pieces.append(_Piece(field, width, text, xored))
    below = sum(width for field, width in lower)
    rows = sum(width for field, width in lower if field == "row")
    return [*pieces, _Piece("row", min(31 - rows, 56 - below), "row", None)]


def _described(pieces: list[_Piece]) -> BankedDescription | None:
    try:
        return BankedDescription(mapping=tuple(piece.text for piece in pieces), **SMALL)  # type: ignore[arg-type]
    except ConfigurationError as error:
        assert "follows from xored bits of other fields" in str(error)  # noqa: PT017 - others are fine
        return None


@given(pieces=_mappings(), number=st.integers(0, 2**56 - 1), offset=st.integers(0, 63))
def test_locations_equal_the_definition(pieces: list[_Piece], number: int, offset: int) -> None:
    description = _described(pieces)
    assume(description is not None)
    assert description is not None
    expected = _defined(pieces, number)
    expected.pop("column")

    assert [Location(**expected)] == locations(description, [number * 64 + offset])


# Row bits above the hashed ones are not changed, so 8 rows are enough.
@pytest.mark.deep
@given(pieces=_mappings())
def test_mapping_is_accepted_if_places_are_unique(pieces: list[_Piece]) -> None:
    pieces = [piece for piece in pieces if piece.field != "unused"]
    numbers = range(2 ** (sum(BITS.values()) + 3))
    places = {tuple(_defined(pieces, number).values()) for number in numbers}
    description = _described(pieces)

    assert (description is None) == (len(places) < len(numbers))


@pytest.mark.parametrize("name", NAMES)
@given(
    logs=st.tuples(*[st.integers(0, 4)] * 5),
    numbers=st.lists(st.integers(0, 2**48 - 1), min_size=1, max_size=20),
)
def test_named_mappings_equal_their_definition(
    name: str, logs: tuple[int, ...], numbers: list[int]
) -> None:
    channels, pseudo, groups, banks, columns = (2**log for log in logs)
    description = BankedDescription(
        mapping=name,
        channels=channels,
        pseudo_channels=pseudo,
        bank_groups=groups,
        banks=banks,
        row_bytes=64 * columns,
    )
    for number in numbers:
        rest, channel = divmod(number, channels)
        above = rest
        if name == "row-bank-rank-column-channel":
            rest //= columns
            rest, rank = divmod(rest, pseudo)
            rest, group = divmod(rest, groups)
        else:
            rest, rank = divmod(rest, pseudo)
            rest, group = divmod(rest, groups)
            rest //= columns
        row, bank = divmod(rest, banks)
        row %= 2**31
        if name != "row-bank-rank-column-channel":
            group ^= row % groups
            bank ^= row // groups % banks
            rank ^= row // groups // banks % pseudo
        if name == "interleaved with hash":
            above %= pseudo * groups * columns * banks * 2**31
            while above and channels > 1:
                above, low = divmod(above, channels)
                channel ^= low
        expected = Location(channel, rank, group, bank, row)
        assert [expected] == locations(description, [64 * number])

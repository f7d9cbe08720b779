"""Where an address is: the channel, the bank, the row and the column of its request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.graph.hardware.address_bits import REQUEST_NUMBER_BITS, address_bits
from fabric.timing.memories.banked_columns import BANK_BITS, BANK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.graph.hardware.memory_models import BankedDescription
    from fabric.timing.engine.machine_code import Counters

__all__ = ["BANK_SHIFT", "BYTES", "BYTE_VALUES", "ROW_SHIFT", "AddressMapping", "Location"]

ROW_SHIFT: Final = BANK_SHIFT + BANK_BITS
"""Of the fields of a packed location; the channel is below."""

BYTES: Final = REQUEST_NUMBER_BITS // 8
BYTE_VALUES: Final = 256


class Location(NamedTuple):
    """Where a request is.

    Attributes:
        channel: of the memory.
        pseudo_channel: of the channel.
        bank_group: of the pseudo channel.
        bank: of the bank group.
        row: of the bank.
        column: of the row, counted in requests.
    """

    channel: int
    pseudo_channel: int
    bank_group: int
    bank: int
    row: int
    column: int


class AddressMapping:
    """What ``[hbm] mapping`` says of addresses.

    Attributes:
        request_shift: an address without so many of its low bits is the number of its request.
        tables: of each byte of that number, the lowest one first, 256 entries; the xor of the
            seven that a number selects is ``channel | bank << 16 | row << 32``, where banks are
            counted through their channel: by pseudo channel, then bank group, then bank.
        end_address: from there on, places are those of lower addresses again.
    """

    def __init__(self, description: BankedDescription) -> None:
        """Take the mapping of ``description``, which has been checked."""
        self._bits: Final = address_bits(description.mapping, description.widths)
        self.request_shift: Final = description.request_bytes.bit_length() - 1
        banks = self._bits["bank"] + self._bits["bank_group"] + self._bits["pseudo_channel"]
        contributions = _contributions(self._bits["channel"], 0)
        contributions ^= _contributions(banks, BANK_SHIFT)
        contributions ^= _contributions(self._bits["row"], ROW_SHIFT)
        self.tables: Final = _tables(contributions)
        number_bits = max(mask.bit_length() for each in self._bits.values() for mask in each)
        self.end_address: Final = 1 << (number_bits + self.request_shift)

    def locate(self, address: int) -> Location:
        """Return where the request is that ``address`` is in."""
        number = address >> self.request_shift
        found = {
            field: sum((number & mask).bit_count() % 2 << bit for bit, mask in enumerate(masks))
            for field, masks in self._bits.items()
        }
        return Location(**found)


def _contributions(masks: Sequence[int], shift: int) -> Counters:
    """Return what each bit of a number flips in the bits from ``shift`` on that xor ``masks``."""
    flips = [
        sum((mask >> number_bit & 1) << (shift + bit) for bit, mask in enumerate(masks))
        for number_bit in range(REQUEST_NUMBER_BITS)
    ]
    return np.array(flips, np.int64)


def _tables(contributions: Counters) -> Counters:
    """Return, for each byte and each of its values, what the bits that are set flip together."""
    tables = np.zeros((BYTES, BYTE_VALUES), np.int64)
    for byte, flips in enumerate(contributions.reshape(BYTES, 8)):
        for bit, flip in enumerate(flips):
            tables[byte, 1 << bit : 2 << bit] = tables[byte, : 1 << bit] ^ flip
    return tables.reshape(-1)

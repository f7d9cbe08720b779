"""Addresses in off-chip memory: regions of tensors, and bursts of tiles."""

from __future__ import annotations

from typing import NamedTuple


class Burst(NamedTuple):
    """A tile on its way between the chip and off-chip memory.

    Row r has ``row_bytes`` bytes and begins at ``address + r * pitch_bytes``. A tile of a
    row-major tensor has the row pitch of the tensor.

    Attributes:
        address: of the first byte, in the address space that all tensors of a program share.
        rows: at least 1.
        row_bytes: at least 1.
        pitch_bytes: from the first byte of a row to the first byte of the next row.
        write: the tile is written to the memory; otherwise it is read.
    """

    address: int
    rows: int
    row_bytes: int
    pitch_bytes: int
    write: bool

    def requests(self, request_bytes: int) -> int:
        """Return the number of requests. Each row begins a new request."""
        return self.rows * -(-self.row_bytes // request_bytes)


class Region(NamedTuple):
    """The addresses of an off-chip tensor, tile by tile.

    Tiles are numbered row-major. If the tiling is unknown, a tile is a byte.

    Attributes:
        write: the operator writes the tensor; otherwise it reads it.
        tiles_across: tiles in a band, a row of tiles.
        tile_pitch_bytes: between neighbouring tiles of a band.
        band_pitch_bytes: between the first tiles of two bands.
        row_pitch_bytes: between rows of a tile; None if they are contiguous.
    """

    first_address: int
    size_bytes: int
    write: bool
    tiles_across: int = 1
    tile_pitch_bytes: int = 1
    band_pitch_bytes: int = 1
    row_pitch_bytes: int | None = None

    def burst(self, rows: int, row_bytes: int, number: int) -> Burst:
        """Return the burst of ``rows`` rows of ``row_bytes`` bytes, which begins at a tile."""
        first_address, _, write, across, tile_pitch_bytes, band_pitch_bytes, pitch_bytes = self
        address = (
            first_address + number // across * band_pitch_bytes + number % across * tile_pitch_bytes
        )
        pitch_bytes = row_bytes if pitch_bytes is None else pitch_bytes
        return Burst(address, rows, row_bytes, pitch_bytes, write)

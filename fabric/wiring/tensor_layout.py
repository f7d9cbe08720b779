"""What is behind what in a tensor in off-chip memory, for all operators that use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fabric.engine.off_chip import Region
from fabric.hardware.placement import PlacementDescription
from fabric.values.dims import is_static, product
from fabric.values.value import row_bytes
from fabric.wiring.off_chip_tensor import OffChipTensor

__all__ = ["TensorLayout", "layout_of"]


class TensorLayout(NamedTuple):
    """Of a tensor.

    Attributes:
        contiguous: each of its tiles is in one piece; else it is row-major.
        padding_bytes: behind each row of a row-major one.
        reason: why it is row-major where tiles are to be contiguous; None where they are, or need
            not be.
    """

    contiguous: bool = False
    padding_bytes: int = 0
    reason: str | None = None

    def size_bytes(self, tensor: OffChipTensor | None) -> int | None:
        """Return what ``tensor`` takes; None where data decide, or nothing is said."""
        size_bytes = None if tensor is None else tensor.size_bytes
        if tensor is None or not isinstance(size_bytes, int):
            return None
        if not self.padding_bytes:
            return size_bytes
        rows: int = product(tensor.shape) // max(1, tensor.columns)
        return size_bytes + rows * self.padding_bytes

    def cut(self, region: Region, tensor: OffChipTensor | None) -> Region:
        """Return ``region`` with the tiles that an operator says of its ``tensor``."""
        if tensor is None or tensor.tile is None:
            return region
        rows, cols = tensor.tile
        rows = rows if is_static(rows) else 1
        width_bytes = row_bytes(cols, tensor.dtype)
        if self.contiguous:
            return region._replace(band_pitch_bytes=rows * width_bytes, row_pitch_bytes=width_bytes)
        pitch_bytes = row_bytes(tensor.columns, tensor.dtype) + self.padding_bytes
        return region._replace(
            tiles_across=max(1, tensor.columns // cols),
            tile_pitch_bytes=width_bytes,
            band_pitch_bytes=rows * pitch_bytes,
            row_pitch_bytes=pitch_bytes,
        )


def layout_of(
    said: Sequence[OffChipTensor | None], placement: PlacementDescription
) -> TensorLayout:
    """Return the layout of one tensor.

    Args:
        said: of it by each operator that uses it; at least one.
        placement: what the hardware wants.
    """
    reason = None
    if placement.tiles == "contiguous":
        reason = _row_major_reason(said)
        if reason is None:
            return TensorLayout(contiguous=True)
    return TensorLayout(False, _padding_bytes(said, placement.row_padding_bytes), reason)


def _row_major_reason(said: Sequence[OffChipTensor | None]) -> str | None:
    """Return why tiles cannot be contiguous."""
    tiles: set[tuple[int, int, int]] = set()
    for each in said:
        if each is None or each.tile is None:
            return "its operator names bytes, not tiles"
        rows, cols = each.tile
        if not is_static(rows):
            return "data decide how many rows its tiles have"
        if each.columns // cols * row_bytes(cols, each.dtype) != row_bytes(
            each.columns, each.dtype
        ):
            return "its tiles begin in the middle of a byte"
        elements = product(each.shape)
        if is_static(elements) and elements % (rows * each.columns):
            return "its tiles do not divide its rows"
        tiles.add((each.columns, rows, cols))
    if len(tiles) == 1:
        return None
    cut = [f"{rows}x{cols} of rows of {width:,}" for width, rows, cols in sorted(tiles)]
    return f"it is cut into tiles of {' and '.join(cut)}"


def _padding_bytes(said: Sequence[OffChipTensor | None], padding_bytes: int) -> int:
    pitches = {
        row_bytes(each.columns, each.dtype)
        for each in said
        if each is not None and each.tile is not None
    }
    if (
        not padding_bytes
        or len(pitches) != 1
        or any(each is None or each.tile is None for each in said)
    ):
        return 0
    (pitch_bytes,) = pitches
    is_power = pitch_bytes & (pitch_bytes - 1) == 0
    return padding_bytes if is_power and pitch_bytes > padding_bytes else 0

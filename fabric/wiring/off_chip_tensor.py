"""What an operator says of the tensor that it reads from or writes to off-chip memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from fabric.arguments.described import Described, refuse
from fabric.values.dims import Dim, dim_text, is_static, product
from fabric.values.value import row_bytes

__all__ = ["OffChipTensor"]


@dataclass(frozen=True)
class OffChipTensor(Described):
    """What an off-chip operator reads or writes: a tensor whose dimensions but the last are rows.

    Attributes:
        shape: outermost first; symbols where data decide; empty for a single number.
        dtype: the element type.
        source: the object that is read: operators that read the same one, as elements of one
            type, find it in one place.
        output: the name of what is written: operators that write to one output share its place.
        tile: rows and columns of the tiles that ``ports.burst`` is told the numbers of, row-major;
            where data decide how many rows they have, it is told the numbers of tiles of one row;
            where None, the first byte of each burst.
        width: columns of the matrix that is cut into these tiles, where it is not the last
            dimension of ``shape``.
    """

    shape: tuple[Dim, ...]
    dtype: np.dtype
    source: object = None
    output: str | None = None
    tile: tuple[Dim, int] | None = None
    width: int | None = None

    @override
    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ProgramError: a value is not what the field says, or tiles do not divide the rows.
        """
        super().__post_init__()
        if self.tile is None:
            return
        rows, cols = self.tile
        width = self.columns
        if rows == 0 or cols < 1 or not is_static(width) or width % cols:
            refuse(
                f"OffChipTensor: rows of length {dim_text(width)} are cut into tiles of "
                f"{dim_text(rows)}x{cols}: "
                "expected a number of columns that tiles divide"
            )

    @property
    def columns(self) -> Dim:
        """Of the matrix that is cut into tiles."""
        return (self.shape or (1,))[-1] if self.width is None else self.width

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all its elements."""
        *outer, cols = self.shape or (1,)
        return product((*outer, row_bytes(cols, self.dtype)))

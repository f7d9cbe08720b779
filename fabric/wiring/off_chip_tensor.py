"""What an operator says of the tensor that it reads from or writes to off-chip memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabric.arguments.described import Described
from fabric.values.dims import Dim, product
from fabric.values.value import row_bytes

__all__ = ["OffChipTensor"]


@dataclass(frozen=True)
class OffChipTensor(Described):
    """What an off-chip operator reads or writes, row-major and without gaps.

    Attributes:
        shape: outermost first; symbols where data decide.
        dtype: the element type.
        source: the object that is read: operators that read the same one, as elements of one
            type, find it in one place.
        output: the name of what is written: operators that write to one output share its place.
    """

    shape: tuple[Dim, ...]
    dtype: np.dtype
    source: object = None
    output: str | None = None

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all its elements."""
        *outer, cols = self.shape
        return product((*outer, row_bytes(cols, self.dtype)))

"""Scratch: a tensor in off-chip memory that a program writes and reads again in one run."""

from __future__ import annotations

import math

import numpy as np

from fabric.extend import Ports, checked, kept_as
from operators.tiles.tensor import Tensor

__all__ = ["Scratch"]


class Scratch(Tensor):
    """A tensor that a RandomOffChipStore writes to, and loads of the same run read from.

    It holds zeros until something is written, in every run anew, and is no output. What a load
    finds is what was acknowledged before the load was asked for it: a program has its loads wait
    for acknowledgements, as ``through_memory`` does. Where two stores of other names or other tiles
    write to one place, the program orders them in the same way.

    Attributes:
        shape: at least two dimensions; all but the last are rows of one matrix.
        dtype: the element type; the hardware's where None.
    """

    @checked
    def __init__(self, shape: tuple[int, ...], *, dtype: str | None = None) -> None:
        """Describe a tensor of zeros.

        Args:
            shape: at least two dimensions.
            dtype: name of the element type; the hardware's where None.

        Raises:
            ProgramError: a value of another type, or no element type has that name.
        """
        super().__init__(shape, dtype=dtype)

    def in_run(self, ports: Ports, dtype: np.dtype) -> np.ndarray:
        """Return what it holds in the run of ``ports``, as the matrix it is stored as."""
        known = ports.stored.scratch
        if self.base not in known:
            known[self.base] = np.zeros(math.prod(self.shape), kept_as(dtype))
        matrix: np.ndarray = known[self.base].reshape(math.prod(self.shape[:-1]), self.shape[-1])
        return matrix

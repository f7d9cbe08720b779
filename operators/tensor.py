"""Tensors in off-chip memory: a shape, an element type, and data that are made when needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric import dtype_named

__all__ = ["Tensor"]


class Tensor:
    """A tensor that a program loads from.

    Attributes:
        shape: at least two dimensions; all but the last are rows of one matrix to the loads.
        dtype: the element type; the hardware's where None.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        data: Callable[[], Any] | NDArray[Any] | None = None,
        *,
        dtype: str | None = None,
    ) -> None:
        """Describe a tensor.

        Args:
            shape: at least two dimensions.
            data: an array or a callable that returns one, evaluated in functional mode only.
            dtype: name of the element type; the hardware's where None.
        """
        self.shape = shape
        self.dtype = None if dtype is None else dtype_named(dtype)
        self._data = data

    @classmethod
    def of(cls, data: Tensor | NDArray[Any]) -> Tensor:
        """Return a tensor as it is; wrap an array, its element type stays open."""
        return data if isinstance(data, Tensor) else cls(data.shape, data)

    @cached_property
    def array(self) -> NDArray[Any]:
        """The data.

        Raises:
            ValueError: there are none, or they have another shape.
        """
        data = self._data() if callable(self._data) else self._data
        if data is None:
            raise ValueError(f"tensor {list(self.shape)} has no data: expected some to run with")
        array = np.asarray(data)
        if array.shape != self.shape:
            raise ValueError(
                f"tensor {list(self.shape)} has data of shape {list(array.shape)}: "
                "expected the same shape"
            )
        return array

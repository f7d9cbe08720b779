"""Tensors in off-chip memory: a shape, an element type, and data that are made when needed.

A Scratch is one that a program writes and reads again in one run.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from fabric import dtype_named
from fabric.extend import (
    Ports,
    check_converts,
    checked,
    converted,
    holds_integers,
    is_constant,
    kept_as,
    refuse,
)

__all__ = ["Elements", "Scratch", "Tensor"]


class Tensor:
    """A tensor that a program loads from.

    Attributes:
        shape: at least two dimensions where it is read or written itself and not through a view;
            all but the last are rows of one matrix to the loads.
        dtype: the element type; the hardware's where None.

    What is loaded has the values of the data: a floating-point type rounds them; where a value
    would change otherwise, such as an integer that the type does not hold, that is an error.

    Data that a callable makes are made when the first tile is read, and dropped when the last
    operator that reads them has ended: what a program computes from them besides, such as what it
    expects, may keep them until then (``elements``).
    """

    @checked
    def __init__(
        self,
        shape: tuple[int, ...],
        data: Callable[[], Any] | np.ndarray | None = None,
        *,
        dtype: str | None = None,
    ) -> None:
        """Describe a tensor.

        Args:
            shape: at least two dimensions; one that is only viewed may have fewer.
            data: an array or a callable that returns one, evaluated in functional mode only;
                and where single integers are loaded, which may be addresses. It is called again
                where the data have been dropped, and returns the same ones.
            dtype: name of the element type. Where None, an array of integers or booleans keeps
                its own; else it is the hardware's.

        Raises:
            ProgramError: a value of another type, an array of another shape, or no element type has
                that name.
        """
        if isinstance(data, np.ndarray) and data.shape != shape:
            refuse(f"Tensor: {_misfit(shape, data.shape)}")
        self.shape = shape
        self.dtype = _own_type(data) if dtype is None else dtype_named(dtype)
        self._data = data
        self._elements: weakref.ref[Elements] | None = None
        self._base: Tensor | None = None

    @classmethod
    def of(cls, data: object) -> Tensor:
        """Return a tensor as it is; wrap an array.

        Raises:
            ProgramError: it is neither.
        """
        if isinstance(data, Tensor):
            return data
        if not isinstance(data, np.ndarray):
            kind = type(data).__name__
            refuse(f"Tensor.of: data is of type {kind}: expected a Tensor or an array")
        return cls(data.shape, data)

    @classmethod
    @checked
    def in_file(cls, file: Path | str, name: str, *, dtype: str | None = None) -> Tensor:
        """Return tensor ``name`` of a safetensors file; its data are mapped, not loaded.

        They are read from the file tile by tile where it has them in the element type of the
        tensor, else as a whole when the first tile is asked for.

        Args:
            file: of the tensor, relative to the working directory.
            name: of the tensor in the file.
            dtype: name of the element type. Where None, integers and booleans keep that of the
                file; else it is the hardware's.

        Raises:
            ProgramError: the file cannot be read, or does not hold the tensor.
        """
        # Only programs that read files need what reads them.
        from operators.tiles.safetensors import find

        found = find(Path(file), name)
        if dtype is None and found.dtype.kind in "biu":
            dtype = found.dtype.name
        return cls(found.shape, found.data, dtype=dtype)

    @checked
    def viewed(self, shape: tuple[int, ...]) -> Self:
        """Return the same elements, in the same place of the memory, as a tensor of another shape.

        Args:
            shape: at least two dimensions, with as many elements.

        Raises:
            ProgramError: the number of elements differs.
        """
        if math.prod(shape) != math.prod(self.shape):
            refuse(
                f"Tensor.viewed: shape is {list(shape)}: "
                f"expected as many elements as {list(self.shape)} has"
            )
        found = copy.copy(self)
        found.shape = shape
        found._base = self.base
        return found

    @property
    def base(self) -> Tensor:
        """The tensor that this one is a view of; itself where it is none."""
        return self if self._base is None else self._base

    @property
    def has_data(self) -> bool:
        """Whether there are any, or something that makes them."""
        return self._data is not None

    def check(self, dtype: np.dtype) -> None:
        """Refuse data that are there already and that ``dtype`` would change.

        Raises:
            ValueError: a value changes.
        """
        if isinstance(self._data, np.ndarray):
            check_converts(self._data, dtype)

    @property
    def array(self) -> np.ndarray:
        """The data, as they were given or are made now.

        Raises:
            ValueError: there are none, or they have another shape.
        """
        if self._base is not None:
            return self._base.array.reshape(self.shape)
        data = self._data() if callable(self._data) else self._data
        if data is None:
            raise ValueError(f"tensor {list(self.shape)} has no data: expected some to run with")
        array = np.asarray(data)
        if array.shape != self.shape:
            raise ValueError(f"tensor {_misfit(self.shape, array.shape)}")
        return array

    def elements(self) -> Elements:
        """Return the data as they are in memory, which all share who hold them at the time."""
        if self._base is not None:
            return self._base.elements()
        elements = None if self._elements is None else self._elements()
        if elements is None:
            elements = Elements(self)
            self._elements = weakref.ref(elements)
        return elements


class Elements:
    """The data of a tensor in off-chip memory, there as long as somebody holds this."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._as: dict[np.dtype, np.ndarray] = {}

    def of(self, dtype: np.dtype) -> np.ndarray:
        """Return them as ``dtype``, not to be written to; an array that nobody may write to as is.

        Raises:
            ValueChangedError: the type does not hold a value.
            ValueError: there are none, or they have another shape.
        """
        found = self._as.get(dtype)
        if found is None:
            array = self._tensor.array
            constant = array.dtype == dtype and is_constant(array)
            found = np.ascontiguousarray(array if constant else converted(array, dtype))
            found.flags.writeable = False
            self._as[dtype] = found
        return found


def _misfit(shape: tuple[int, ...], found: tuple[int, ...]) -> str:
    return f"{list(shape)} has data of shape {list(found)}: expected the same shape"


def _own_type(data: object) -> np.dtype | None:
    """Return the element type of an array of integers or booleans."""
    if isinstance(data, np.ndarray) and (data.dtype.kind == "b" or holds_integers(data.dtype)):
        return dtype_named(data.dtype.name)
    return None


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

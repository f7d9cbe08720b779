"""Tensors in off-chip memory: a shape, an element type, and data from a function or a file.

A safetensors file begins with the length of its header in eight bytes. The header is a JSON object
with the element type, the shape and the place of every tensor. The data follow, row-major and
little-endian. The library safetensors checks the header. This module maps the data, so that
each tile is read only when it is needed.
"""

from __future__ import annotations

import copy
import math
import stat
import weakref
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import ml_dtypes
import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open

from fabric import dtype_named
from fabric.extend import (
    Ports,
    TrackedArray,
    check_converts,
    checked,
    converted,
    holds_integers,
    is_constant,
    kept_as,
    loaded,
    refuse,
    tracks_errors,
)

_TYPES: Final = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
}


class Mapped(NamedTuple):
    """A tensor in a file; its data begin at byte ``offset_bytes``."""

    file: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset_bytes: int

    def data(self) -> np.ndarray:
        """Map the data, read-only; the operating system reads them when a tile is read."""
        if not math.prod(self.shape):
            return np.zeros(self.shape, self.dtype)
        return np.memmap(self.file, self.dtype, "r", self.offset_bytes, self.shape)


def find(file: Path, name: str) -> Mapped:
    """Return tensor ``name`` of a safetensors file; only the header is read."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe may never be written to
            refuse(f"{file} is not a regular file: expected a file of safetensors")
        tensors, first_byte = _header(file, status.st_size, status.st_mtime_ns)
    except OSError as error:
        refuse(f"{file} cannot be read ({error.strerror or error}): expected a file of safetensors")
    except SafetensorError as error:
        refuse(f"{file} is not a file of safetensors ({error}): expected a file by save_file")
    if name not in tensors:
        more = f" and {len(tensors) - 4:,} more" if len(tensors) > 4 else ""
        shown = ", ".join(sorted(tensors)[:4]) + more or "nothing"
        refuse(f"{file} holds no tensor {name!r}: expected one of {shown}")
    entry = tensors[name]
    if entry["dtype"] not in _TYPES:
        refuse(
            f"{file} holds tensor {name!r} of {entry['dtype']}: expected one of {', '.join(_TYPES)}"
        )
    offset_bytes = first_byte + entry["data_offsets"][0]
    return Mapped(file, np.dtype(_TYPES[entry["dtype"]]), tuple(entry["shape"]), offset_bytes)


@lru_cache(maxsize=8)
def _header(file: Path, _size_bytes: int, _changed_ns: int) -> tuple[dict[str, Any], int]:
    """Return the entries of all tensors, and the place of the first byte of the data.

    A model's programs use hundreds of tensors of each file, so the header is cached.
    """
    with safe_open(file, framework="numpy"):
        pass  # safe_open checks all entries
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        tensors = msgspec.json.decode(opened.read(length))
    tensors.pop("__metadata__", None)
    return tensors, 8 + length


class Tensor:
    """A tensor that a program loads from.

    Attributes:
        shape: at least two dimensions, unless it is only read through views; for loads, all leading
            dimensions are rows of one matrix.
        dtype: the element type; the hardware's if None.

    Loads deliver the values of the data. A floating-point type rounds them; any other change of a
    value, such as an integer that the type does not hold, is an error. Data from a callable are
    made when the first tile is read, and dropped when the last operator that reads them has ended.
    Code that holds the result of ``elements`` keeps the data longer.
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
            shape: at least two dimensions; a tensor that is only viewed may have fewer.
            data: an array, or a callable that returns one. It is called in functional mode. If
                loads read single integers, which may be addresses, it is called in both modes.
                It is called again after the data were dropped, and has to return the same data.
            dtype: name of the element type. If None, the type of an array of integers or booleans,
                otherwise the hardware's.

        Raises:
            ProgramError: an argument has the wrong type, the array has another shape, or ``dtype``
                is unknown.
        """
        if isinstance(data, np.ndarray) and data.shape != shape:
            refuse(f"Tensor: {_misfit(shape, data.shape)}")
        self.shape = shape
        self.dtype = _own_type(data) if dtype is None else dtype_named(dtype)
        self._data = data
        self._elements: weakref.ref[Elements] | None = None
        self._base: Tensor | None = None

    @classmethod
    @checked
    def of(cls, data: Tensor | np.ndarray) -> Tensor:
        """Return a tensor unchanged; wrap an array.

        Raises:
            ProgramError: it is neither.
        """
        return data if isinstance(data, Tensor) else cls(data.shape, data)

    @classmethod
    @checked
    def in_file(cls, file: Path | str, name: str, *, dtype: str | None = None) -> Tensor:
        """Return tensor ``name`` of a safetensors file; its data are mapped, not loaded.

        If the file has the element type of the tensor, the data are read tile by tile, otherwise as
        a whole with the first tile.

        Args:
            file: of the tensor, relative to the working directory.
            name: of the tensor in the file.
            dtype: name of the element type. If None, the file's for integers and booleans,
                otherwise the hardware's.

        Raises:
            ProgramError: the file cannot be read, or does not hold the tensor.
        """
        mapped = find(Path(file), name)
        if dtype is None and mapped.dtype.kind in "biu":
            dtype = mapped.dtype.name
        return cls(mapped.shape, mapped.data, dtype=dtype)

    @checked
    def viewed(self, shape: tuple[int, ...]) -> Self:
        """Return the same elements, in the same place of the memory, as a tensor of another shape.

        Args:
            shape: at least two dimensions, with the same number of elements.

        Raises:
            ProgramError: the number of elements differs.
        """
        if math.prod(shape) != math.prod(self.shape):
            refuse(
                f"Tensor.viewed: shape is {list(shape)}: "
                f"expected the number of elements of {list(self.shape)}"
            )
        view = copy.copy(self)
        view.shape = shape
        view._base = self.base
        return view

    @property
    def base(self) -> Tensor:
        """The tensor that this one is a view of; otherwise the tensor itself."""
        return self if self._base is None else self._base

    @property
    def has_data(self) -> bool:
        return self._data is not None

    def check(self, dtype: np.dtype) -> None:
        """Refuse data in an array that ``dtype`` would change."""
        if isinstance(self._data, np.ndarray):
            check_converts(self._data, dtype)

    @property
    def array(self) -> np.ndarray:
        """The array that was given, or that the callable returns.

        Raises:
            ValueError: the tensor has no data, or data of another shape.
        """
        if self._base is not None:
            return self._base.array.reshape(self.shape)
        data = self._data
        if data is None:
            raise ValueError(f"tensor {list(self.shape)} has no data: expected data to run with")
        array = data() if callable(data) else data
        if callable(data) and not isinstance(array, TrackedArray):
            array = Tensor.of(array).array
        if array.shape != self.shape:
            raise ValueError(f"tensor {_misfit(self.shape, array.shape)}")
        return array

    def elements(self) -> Elements:
        """Return the data in memory, shared by all current holders."""
        if self._base is not None:
            return self._base.elements()
        elements = None if self._elements is None else self._elements()
        if elements is None:
            elements = Elements(self)
            self._elements = weakref.ref(elements)
        return elements


class Elements:
    """The data of a tensor in off-chip memory, kept while any holder refers to them."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._as: dict[np.dtype, tuple[np.ndarray, np.ndarray | None]] = {}

    def of(self, dtype: np.dtype) -> np.ndarray:
        """Return the data as ``dtype``, read-only; a constant array of that type is not copied.

        Raises:
            ValueChangedError: the type does not hold a value.
            ValueError: the tensor has no data, or data of another shape.
        """
        tracks = tracks_errors()
        data, tracked = self._as.get(dtype, (None, None))
        if data is None or (tracks and tracked is None):
            array = self._tensor.array
            constant = array.dtype == dtype and is_constant(array)
            data = np.ascontiguousarray(array if constant else converted(array, dtype))
            data.flags.writeable = False
            tracked = loaded(data, array) if tracks else None
            self._as[dtype] = data, tracked
        return data if not tracks or tracked is None else tracked


def _misfit(shape: tuple[int, ...], found: tuple[int, ...]) -> str:
    return f"{list(shape)} has data of shape {list(found)}: expected the same shape"


def _own_type(data: object) -> np.dtype | None:
    if isinstance(data, np.ndarray) and (data.dtype.kind == "b" or holds_integers(data.dtype)):
        return dtype_named(data.dtype.name)
    return None


class Scratch(Tensor):
    """A tensor that a RandomOffChipStore writes to, and loads of the same run read from.

    Every run starts with zeros; a scratch is not an output. A load reads the data that were
    acknowledged before its request. So a program makes its loads wait for acknowledgements, as
    ``through_memory`` does. If two stores with different names or tiles write to the same place,
    the program has to order them by acknowledgements, too.

    Attributes:
        shape: at least two dimensions; all leading dimensions are rows of one matrix.
        dtype: the element type; the hardware's if None.
    """

    @checked
    def __init__(self, shape: tuple[int, ...], *, dtype: str | None = None) -> None:
        """Describe a tensor of zeros.

        Args:
            shape: at least two dimensions.
            dtype: name of the element type; the hardware's if None.

        Raises:
            ProgramError: an argument has the wrong type, or ``dtype`` is unknown.
        """
        super().__init__(shape, dtype=dtype)

    def in_run(self, ports: Ports, dtype: np.dtype) -> np.ndarray:
        """Return the contents in the run of ``ports``, as a matrix."""
        known = ports.stored.scratch
        if self.base not in known:
            zeros = np.zeros(math.prod(self.shape), kept_as(dtype))
            known[self.base] = loaded(zeros, zeros).copy()
        matrix: np.ndarray = known[self.base].reshape(math.prod(self.shape[:-1]), self.shape[-1])
        return matrix

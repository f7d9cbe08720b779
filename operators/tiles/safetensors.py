"""Tensors in safetensors files: found by name while wiring, mapped when their data are asked for.

A file is eight bytes with the length of a header, the header, which is a JSON object with the
element type, the shape and the place of every tensor, and their data, row-major and little-endian.
"""

from __future__ import annotations

import math
import stat
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import ml_dtypes
import msgspec
import numpy as np

from fabric.extend import refuse

__all__ = ["Mapped", "find"]

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

_LENGTH_BYTES: Final = 8
_MOST_BYTES: Final = 100_000_000
"""Of a header: the format's own limit."""


class Mapped(NamedTuple):
    """A tensor in a file.

    Attributes:
        file: where it is.
        dtype: its element type there.
        shape: outermost first.
        offset_bytes: from where the file begins to where its data do.
    """

    file: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset_bytes: int

    def data(self) -> np.ndarray:
        """Map the data: they are read when they are looked at, and cannot be written to."""
        if not math.prod(self.shape):
            return np.zeros(self.shape, self.dtype)
        return np.memmap(self.file, self.dtype, "r", self.offset_bytes, self.shape)


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    # numpy has no more dimensions and no longer ones.
    shape: Annotated[
        tuple[Annotated[int, msgspec.Meta(lt=1 << 62)], ...], msgspec.Meta(max_length=64)
    ]
    data_offsets: tuple[int, int]


class _Range(msgspec.Struct, frozen=True):
    data_offsets: tuple[int, int]


class _Header(NamedTuple):
    tensors: dict[str, msgspec.Raw]
    first_byte: int
    size_bytes: int
    is_whole: bool


def find(file: Path, name: str) -> Mapped:
    """Return tensor ``name`` of ``file``, of which only the header is read.

    Raises:
        ProgramError: the file cannot be read, is no safetensors file or does not hold the tensor.
    """
    try:
        known = file.stat()
        if not stat.S_ISREG(known.st_mode):  # a pipe may never be written to
            raise ValueError
        header = _header(file, known.st_size, known.st_mtime_ns)
    except OSError as error:
        refuse(f"{file} cannot be read ({error.strerror or error}): expected a file of safetensors")
    except (ValueError, RecursionError, msgspec.MsgspecError):
        refuse(f"{file} is no file of safetensors: expected one, as safetensors.save_file writes")
    if name not in header.tensors or name == "__metadata__":
        held = sorted(each for each in header.tensors if each != "__metadata__")
        more = f" and {len(held) - 4:,} more" if len(held) > 4 else ""
        shown = ", ".join(held[:4]) + more or "nothing"
        refuse(f"{file} holds no tensor {name!r}: expected one of {shown}")
    try:
        entry = msgspec.json.decode(header.tensors[name], type=_Entry)
    except (RecursionError, msgspec.MsgspecError) as error:
        refuse(f"{file} describes tensor {name!r} wrongly: {error}")
    found = _mapped(file, name, entry, header)
    if not header.is_whole:
        refuse(
            f"{file} has tensors that overlap, or bytes that are of none: expected tensors one "
            "behind the other, as the format has them"
        )
    return found


def _mapped(file: Path, name: str, entry: _Entry, header: _Header) -> Mapped:
    """Return where the tensor is, which is inside of the file."""
    kind = _TYPES.get(entry.dtype)
    if kind is None:
        refuse(
            f"{file} holds tensor {name!r} of {entry.dtype}: expected one of {', '.join(_TYPES)}"
        )
    dtype = np.dtype(kind)
    first, end = entry.data_offsets
    wanted = math.prod(entry.shape) * dtype.itemsize
    if not wanted and math.prod(filter(None, entry.shape)) * dtype.itemsize >= 1 << 63:
        refuse(f"{file} has tensor {name!r} {list(entry.shape)}: expected what numpy can hold")
    room = header.size_bytes - header.first_byte
    if min(entry.shape, default=0) < 0 or not 0 <= first <= end <= room or end - first != wanted:
        refuse(
            f"{file} has bytes {first:,} to {end:,} of {room:,} for tensor {name!r} "
            f"{list(entry.shape)} of {entry.dtype}: expected {wanted:,} of the file"
        )
    return Mapped(file, dtype, entry.shape, header.first_byte + first)


@lru_cache(maxsize=8)
def _header(file: Path, size_bytes: int, _changed_ns: int) -> _Header:
    """Read the header of a file; a model's programs ask for hundreds of tensors of each."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(_LENGTH_BYTES), "little")
        if length > min(_MOST_BYTES, size_bytes - _LENGTH_BYTES):
            raise ValueError
        text = opened.read(length)
    tensors = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    first_byte = _LENGTH_BYTES + length
    return _Header(tensors, first_byte, size_bytes, _is_whole(tensors, size_bytes - first_byte))


def _is_whole(tensors: dict[str, msgspec.Raw], room: int) -> bool:
    """Whether each byte of the data is one tensor's; what a wrong entry says is told for itself."""
    try:
        ranges = sorted(
            msgspec.json.decode(entry, type=_Range).data_offsets
            for name, entry in tensors.items()
            if name != "__metadata__"
        )
    except (RecursionError, msgspec.MsgspecError):
        return True
    ends = [0, *(end for _, end in ranges)]
    return [first for first, _ in ranges] == ends[:-1] and ends[-1] == room

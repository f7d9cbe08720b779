"""Block-scaled element types: 32 neighbours of a row share a scale, a power of two.

Arrays store the scale with each element. Memories and channels store it once for each block.

Source: OCP Microscaling Formats (MX) Specification, version 1.0, sections 5 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass

# Any: ml_dtypes has no types.
from typing import Any, Final

import ml_dtypes
import numpy as np

BLOCK: Final = 32
"""Neighbours of a row that share a scale; the last block of a row may have fewer."""

_SCALE: Final = np.dtype(ml_dtypes.float8_e8m0fnu)
_EXPONENTS: Final = (-127, 127)
"""The least and the largest exponent of a scale."""


@dataclass(frozen=True)
class BlockFormat:
    """A format of the specification. An element takes ``bits`` bits in memories and channels."""

    name: str
    element: np.dtype
    bits: int

    @property
    def dtype(self) -> np.dtype:
        """The type of arrays: an element and the scale of its block."""
        return np.dtype([("element", self.element), ("scale", _SCALE)])

    @property
    def most(self) -> float:
        finfo: Any = vars(ml_dtypes)["finfo"]
        return float(finfo(self.element).max)

    @property
    def step(self) -> float:
        """The largest relative distance between adjacent numbers, also with different scales."""
        finfo: Any = vars(ml_dtypes)["finfo"]
        beyond = float(np.ldexp(1.0, np.frexp(self.most)[1]))
        return max(float(finfo(self.element).eps), beyond / self.most - 1)


_FORMATS: Final = (
    BlockFormat("mxfp4", np.dtype(ml_dtypes.float4_e2m1fn), 4),
    BlockFormat("mxfp6_e2m3", np.dtype(ml_dtypes.float6_e2m3fn), 6),
    BlockFormat("mxfp6_e3m2", np.dtype(ml_dtypes.float6_e3m2fn), 6),
    BlockFormat("mxfp8_e4m3", np.dtype(ml_dtypes.float8_e4m3fn), 8),
    BlockFormat("mxfp8_e5m2", np.dtype(ml_dtypes.float8_e5m2), 8),
)

BLOCK_SCALED: Final = {form.name: form.dtype for form in _FORMATS}
"""The element types by their names."""

_FORMAT_OF: Final = {form.dtype: form for form in _FORMATS}
_VOID: Final = np.dtype(np.void).num
"""``dtype.num`` of types with fields. In streams, all such types are block-scaled."""


def block_format(dtype: np.dtype) -> BlockFormat | None:
    """Return the format of a block-scaled element type; None for other types."""
    return _FORMAT_OF.get(dtype) if dtype.num == _VOID else None


def blocks_of(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return finite numbers ``[..., columns]`` as the block-scaled type ``dtype``, by rows.

    The scale is the largest power of two in the block, divided by the largest power of two of
    the element type. Elements are rounded to even, and clamped.
    """
    if array.dtype == dtype:
        return array.copy()
    form = block_format(dtype)
    assert form is not None
    numbers = np.atleast_1d(array.astype(np.float64))
    *outer, cols = numbers.shape
    count = -(-cols // BLOCK)
    padded = np.zeros((*outer, count * BLOCK))
    padded[..., :cols] = numbers
    blocks = padded.reshape(*outer, count, BLOCK)
    largest = np.abs(blocks).max(axis=-1, keepdims=True, initial=0.0)
    # The exponent of frexp is one above the exponent of the largest power of two.
    exponents = np.frexp(largest)[1] - np.frexp(form.most)[1]
    exponents = np.clip(np.where(largest > 0, exponents, _EXPONENTS[0]), *_EXPONENTS)
    elements = np.clip(np.ldexp(blocks, -exponents), -form.most, form.most)
    result = np.empty(blocks.shape, dtype)
    result["element"] = elements.astype(form.element)
    result["scale"] = np.ldexp(1.0, exponents).astype(_SCALE)
    return np.ascontiguousarray(result.reshape(padded.shape)[..., :cols]).reshape(array.shape)


def numbers_of(array: np.ndarray) -> np.ndarray:
    """Return the numbers of an array of a block-scaled type, in float32."""
    # Elements and scales are exact in float32, and so is each product that float32 holds.
    with np.errstate(over="ignore"):
        result: np.ndarray = array["element"].astype(np.float32) * array["scale"].astype(np.float32)
    return result

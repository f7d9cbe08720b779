"""PyTorch's tensors and element types as numpy's."""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np
import torch

from operators.torch.refusing import UnsupportedError

__all__ = ["array_of", "dtype_of"]

_DTYPES: Final[dict[object, np.dtype]] = {
    torch.float32: np.dtype(np.float32),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float8_e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: np.dtype(ml_dtypes.float8_e5m2),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.uint8: np.dtype(np.uint8),
    torch.bool: np.dtype(np.bool_),
}

_BITS: Final = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}
"""Types that numpy does not know by itself, and what has as many bits."""


def dtype_of(dtype: torch.dtype) -> np.dtype:
    """Return numpy's name for an element type.

    Raises:
        UnsupportedError: there is none.
    """
    found = _DTYPES.get(dtype)
    if found is None:
        known = ", ".join(str(each).removeprefix("torch.") for each in _DTYPES)
        name = str(dtype).removeprefix("torch.")
        raise UnsupportedError(f"its element type is {name}: expected one of {known}")
    return found


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Return the numbers of a tensor that has some, which is not copied where it need not be."""
    dtype = dtype_of(tensor.dtype)
    tensor = tensor.detach()
    bits = _BITS.get(tensor.dtype)
    if bits is not None:
        tensor = tensor.contiguous().view(bits)
    array: np.ndarray = tensor.numpy()
    return array.astype(dtype, copy=False) if bits is None else array.view(dtype)

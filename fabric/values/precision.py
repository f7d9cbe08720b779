"""In which type a run keeps the numbers of tiles: in their own, or all floats in float64."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Final

import ml_dtypes
import numpy as np

__all__ = ["exact_numbers", "kept_as", "unit_of"]

_exact: ContextVar[bool] = ContextVar("exact", default=False)

_DOUBLE: Final = np.dtype(np.float64)

_units: Final[dict[np.dtype, float]] = {}


@contextlib.contextmanager
def exact_numbers(exact: bool) -> Iterator[None]:
    """Keep the numbers of all float tiles in float64 inside, where ``exact``."""
    token = _exact.set(exact)
    try:
        yield
    finally:
        _exact.reset(token)


def kept_as(dtype: np.dtype) -> np.dtype:
    """Return the type in which this run keeps the numbers of a tile of type ``dtype``.

    That is ``dtype``; of floats it is float64 in a run that is exact. The sizes of tiles are those
    of ``dtype`` in any run.
    """
    return _DOUBLE if _exact.get() and unit_of(dtype) else dtype


def unit_of(dtype: np.dtype) -> float:
    """Return the distance from 1 to the next number of a float type; 0 for other types."""
    unit = _units.get(dtype)
    if unit is None:
        finfo: Any = vars(ml_dtypes)["finfo"]  # it has no annotations
        try:
            unit = 0.0 if dtype.kind == "c" else float(finfo(dtype).eps)
        except ValueError:
            unit = 0.0
        _units[dtype] = unit
    return unit

"""Outputs in a file of numpy's, whatever they are called and whatever their element type."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import ml_dtypes
import numpy as np

from fabric.arguments.described import refuse
from fabric.telling.errors import ConfigurationError
from fabric.telling.whole_file import output_file
from fabric.telling.wording import visible

__all__ = ["save_arrays"]

_ADDED: Final = 2
"""``isbuiltin`` of element types that are not numpy's own."""


def save_arrays(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Write ``arrays`` into ``path``; ``numpy.savez`` has no room for some names and types.

    Raises:
        ConfigurationError: the file cannot hold one of them.
        OSError: it cannot be written; half of a file is not left behind.
    """
    seen = _seen(arrays, path)
    with output_file(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in seen.items():
            # A date of its own would make the files of two equal runs differ.
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as data:
                np.lib.format.write_array(data, _wide(array), allow_pickle=False)


def _seen(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Return ``arrays`` by the names that a file has for them."""
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            _cannot(path, f"output {name!r} is an array of objects: expected one of numbers")
        seen = visible(name)
        # numpy finds `y.npy` under both names.
        for taken in (seen, f"{seen}.npy", seen.removesuffix(".npy")):
            if taken in found:
                reason = f"outputs {taken!r} and {seen!r} are one name in a file of numpy's"
                _cannot(path, f"{reason}: expected others")
        found[seen] = array
    return found


def _wide(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in a type of numpy's own that has all of its numbers."""
    if array.dtype.isbuiltin != _ADDED:
        return array
    try:
        vars(ml_dtypes)["iinfo"](array.dtype)  # it has no annotations
    except ValueError:
        return array.astype(np.float32)
    return array.astype(np.int8)


def _cannot(path: Path, reason: str) -> NoReturn:
    refuse(f"{path} is not written: {reason}", ConfigurationError)

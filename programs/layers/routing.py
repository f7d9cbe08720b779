"""Which experts each token goes to: read from a file and checked, or drawn."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError
from layers.files import load

__all__ = ["draw_routing", "read_routing"]


def draw_routing(tokens: int, top_k: int, experts: int, seed: int) -> NDArray[np.int64]:
    """Return ``top_k`` different experts for every token, [tokens, top_k].

    The popularity of the experts follows Zipf's law (the n-th is chosen 1/n as often as the
    first), in an order that ``seed`` decides.
    """
    random = np.random.default_rng((seed, 0))
    popularity = -np.log(random.permutation(experts) + 1.0)
    # The largest of log-weights with Gumbel noise: draws without replacement.
    chances = popularity + random.gumbel(size=(tokens, experts))
    return np.argsort(-chances, axis=1)[:, :top_k].astype(np.int64)


def read_routing(file: Path, tokens: int, top_k: int, experts: int) -> NDArray[np.int64]:
    """Return the first ``tokens`` rows of array ``data`` in ``file``, [tokens, top_k].

    Raises:
        ConfigurationError: the file cannot be read, or a row is no choice of ``top_k`` different
            experts.
    """
    who = f"routing file {file}"
    data = _array(file, who)
    if data.ndim != 2 or data.shape[1] != top_k:
        raise ConfigurationError(
            f"{who}: data has shape {list(data.shape)}: expected [tokens, {top_k}]"
        )
    if not np.issubdtype(data.dtype, np.integer):
        raise ConfigurationError(f"{who}: data is of type {data.dtype}: expected integers")
    if len(data) < tokens:
        raise ConfigurationError(
            f"{who}: data has {len(data):,} rows: expected at least batch={tokens:,}"
        )
    data = data[:tokens]
    outside = np.argwhere((data < 0) | (data >= experts))
    if len(outside):
        row, slot = outside[0]
        raise ConfigurationError(
            f"{who}: row {row} names expert {data[row, slot]}: expected 0 to {experts - 1}"
        )
    ordered = np.sort(data, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        row, slot = twice[0]
        raise ConfigurationError(
            f"{who}: row {row} names expert {ordered[row, slot]} twice: "
            "expected different experts in a row"
        )
    return data.astype(np.int64)


def _array(file: Path, who: str) -> NDArray[Any]:
    expected = "an .npz file with an array data"
    archive = load(file, who, expected)
    if isinstance(archive, np.ndarray):
        raise ConfigurationError(f"{who}: holds a single array: expected {expected}")
    with archive:
        if "data" not in archive.files:
            held = ", ".join(archive.files) or "nothing"
            raise ConfigurationError(f"{who}: holds {held}: expected an array data")
        try:
            found: NDArray[Any] = archive["data"]
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise ConfigurationError(
                f"{who}: data is no array of numbers: expected integers [tokens, top_k]"
            ) from error
    return found

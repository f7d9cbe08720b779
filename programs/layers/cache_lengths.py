"""Lengths of the key-value caches, from a file or random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError
from layers.files import load

MEDIAN_TOKENS = 1024
SPREAD = 1.0
LONGEST_TOKENS = 8192
LONGEST_READ = 2**31 - 1


def draw_lengths(requests: int, seed: int) -> NDArray[np.int64]:
    """Return random lengths in tokens: log-normal, median 1,024, spread 1, at most 8,192."""
    random = np.random.default_rng((seed, 0))
    lengths = random.lognormal(np.log(MEDIAN_TOKENS), SPREAD, requests)
    return np.minimum(lengths, LONGEST_TOKENS).astype(np.int64)


def read_lengths(file: Path | str, requests: int | None) -> NDArray[np.int64]:
    """Return the first ``requests`` lengths in ``file``; all if None."""
    who = f"cache-length file {file}"
    lengths = load(file, who, "an .npy file of lengths")
    if lengths.ndim != 1 or not np.issubdtype(lengths.dtype, np.integer):
        raise ConfigurationError(
            f"{who}: holds {lengths.dtype} {list(lengths.shape)}: expected integers [requests]"
        )
    if len(lengths) < (1 if requests is None else requests):
        raise ConfigurationError(
            f"{who}: holds an array [{len(lengths)}]: expected a length of at least "
            f"{'1' if requests is None else f'requests={requests:,}'}"
        )
    lengths = lengths[:requests]
    wrong = np.flatnonzero((lengths < 0) | (lengths > LONGEST_READ))
    if len(wrong):
        raise ConfigurationError(
            f"{who}: request {wrong[0]} has length {lengths[wrong[0]]}: "
            f"expected 0 to {LONGEST_READ:,}"
        )
    return lengths.astype(np.int64)

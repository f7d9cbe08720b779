"""The experts of each token, from a file or random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError
from layers.files import load


def draw_routing(tokens: int, top_k: int, experts: int, seed: int) -> NDArray[np.int64]:
    """Return ``top_k`` different random experts for every token, [tokens, top_k].

    The popularity of the experts follows Zipf's law: the n-th expert has 1/n of the weight of the
    first one. The order of the experts is random, too.
    """
    random = np.random.default_rng((seed, 0))
    popularity = -np.log(random.permutation(experts) + 1.0)
    # The largest log-weights with Gumbel noise are draws without replacement.
    chances = popularity + random.gumbel(size=(tokens, experts))
    return np.argsort(-chances, axis=1)[:, :top_k].astype(np.int64)


def read_routing(
    file: Path | str, tokens: int, top_k: int, experts: int, first: int = 0
) -> NDArray[np.int64]:
    """Return ``tokens`` rows of the array in ``file``, from row ``first`` on, [tokens, top_k]."""
    who = f"routing file {file}"
    data = load(file, who, "an .npz file with an array data", "data")
    if data.ndim != 2 or data.shape[1] != top_k:
        raise ConfigurationError(
            f"{who}: data has shape {list(data.shape)}: expected [tokens, {top_k}]"
        )
    if not np.issubdtype(data.dtype, np.integer):
        raise ConfigurationError(f"{who}: data is of type {data.dtype}: expected integers")
    if len(data) < first + tokens:
        after = f" after the first {first:,}" if first else ""
        raise ConfigurationError(
            f"{who}: data is {list(data.shape)}: expected at least batch={tokens:,} rows{after}"
        )
    data = data[first : first + tokens]
    outside = np.argwhere((data < 0) | (data >= experts))
    if len(outside):
        row, slot = outside[0]
        raise ConfigurationError(
            f"{who}: row {first + row} names expert {data[row, slot]}: expected 0 to {experts - 1}"
        )
    ordered = np.sort(data, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        row, slot = twice[0]
        raise ConfigurationError(
            f"{who}: row {first + row} names expert {ordered[row, slot]} twice: "
            "expected different experts in a row"
        )
    return data.astype(np.int64)

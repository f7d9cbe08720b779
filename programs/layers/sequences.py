"""Pairs of sequences of symbols, from a file or random, and their edit distance."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError

Letters: TypeAlias = NDArray[np.int64]
"""A sequence, with an integer of at least 0 for each symbol."""

ALPHABET = 4
SKEW = 0.7
"""Lengths are ``(longest + 1) ** (u**SKEW) - 1`` for a uniform u; SKEW = 0 gives equal lengths."""


def draw_pairs(pairs: int, longest: int, seed: int) -> list[tuple[Letters, Letters]]:
    """Return random pairs of sequences over 4 symbols: most are short, a few almost ``longest``."""
    random = np.random.default_rng((seed, 0))
    lengths = (longest + 1) ** (random.random((pairs, 2)) ** SKEW) - 1
    return [
        (random.integers(0, ALPHABET, int(left)), random.integers(0, ALPHABET, int(right)))
        for left, right in lengths
    ]


def read_pairs(file: Path | str) -> list[tuple[Letters, Letters]]:
    """Return the pairs in ``file``, which has a pair per line and a comma between the two."""
    who, expected = f"file of pairs {file}", "two words with a comma between them on every line"
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise ConfigurationError(
            f"{who}: cannot be read ({reason}): expected {expected}"
        ) from error
    if not lines:
        raise ConfigurationError(f"{who}: is empty: expected {expected}")
    pairs = []
    for number, line in enumerate(lines, 1):
        words = line.split(",")
        if len(words) != 2:
            raise ConfigurationError(f"{who}: line {number} is {line!r}: expected {expected}")
        left, right = (np.array([ord(letter) for letter in word], np.int64) for word in words)
        pairs.append((left, right))
    return pairs


def distance(left: Letters, right: Letters) -> int:
    """Return the edit distance, row by row (R. Wagner and M. Fischer, Journal of the ACM, 1974)."""
    above = list(range(len(right) + 1))
    for row, letter in enumerate(left.tolist(), 1):
        here = [row]
        for column, other in enumerate(right.tolist(), 1):
            changed = above[column - 1] + (letter != other)
            here.append(min(changed, above[column] + 1, here[-1] + 1))
        above = here
    return above[-1]

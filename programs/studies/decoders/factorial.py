"""Main effects and interactions of options that are on or off, as factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping


def effects(values: Mapping[tuple[bool, ...], float]) -> dict[tuple[int, ...], float]:
    """Return by which factor each option, and each group of options together, changes a number.

    An option's main effect is the geometric mean, over all settings of the others, of the number
    with it over that without. Two options' interaction is the mean of the one's effect with the
    other over its effect without: 1 where they multiply, above 1 where together they save less
    than that. So on for more of them.

    Args:
        values: the number, above 0, of every combination.

    Returns:
        By the indices of the options, those of one first.
    """
    options = len(next(iter(values)))
    found = {}
    for size in range(1, options + 1):
        for group in itertools.combinations(range(options), size):
            logs = [
                math.log(value) * math.prod(1 if combination[each] else -1 for each in group)
                for combination, value in values.items()
            ]
            found[group] = math.exp(math.fsum(logs) / 2 ** (options - size))
    return found

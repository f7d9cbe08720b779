"""Main effects and interactions of options that are on or off, as factors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping


def effects(values: Mapping[tuple[bool, ...], float]) -> dict[tuple[int, ...], float]:
    """Return the effect of each option on a number, and the interactions of groups of options.

    The effect of an option is the number with the option over the number without it, as a geometric
    mean over all settings of the other options. The interaction of two options is the effect of the
    first option with the second option over its effect without it. It is 1 if effects multiply. It
    is above 1 if two options that save something save less together. Larger groups follow in the
    same way.

    Args:
        values: the number for every combination, above 0.

    Returns:
        The effects by the indices of options, with single options first.
    """
    options = len(next(iter(values)))
    of_groups = {}
    for size in range(1, options + 1):
        for group in itertools.combinations(range(options), size):
            logs = [
                math.log(value) * math.prod(1 if combination[each] else -1 for each in group)
                for combination, value in values.items()
            ]
            of_groups[group] = math.exp(math.fsum(logs) / 2 ** (options - size))
    return of_groups

"""Intersect and Union of groups of (coordinate, payload), and Scatter."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tests.definitions.tensors import at_depth, leaves

Pairs = list[tuple[int, Any]]

_COMBINE: dict[str, Callable[[float, float], float]] = {"add": operator.add, "max": max, "min": min}


def intersect(dims: int, left: Any, right: Any) -> list[Any]:
    """Return the coordinates that both groups have, with the left and the right payloads."""

    def common(first: Pairs, second: Pairs) -> list[tuple[int, Any, Any]]:
        a, b = dict(first), dict(second)
        return [(each, a[each], b[each]) for each in sorted(a.keys() & b.keys())]

    return _parted(dims, at_depth(common, dims - 1, left, right))


def union(filler: Any, dims: int, left: Any, right: Any) -> list[Any]:
    """Return the coordinates of either group, with both payloads or ``filler``."""

    def either(first: Pairs, second: Pairs) -> list[tuple[int, Any, Any]]:
        a, b = dict(first), dict(second)
        return [(each, a.get(each, filler), b.get(each, filler)) for each in sorted({**a, **b})]

    return _parted(dims, at_depth(either, dims - 1, left, right))


def scatter(
    words: int, update: str, initial: float, dims: int, rank: int, addresses: Any, values: Any
) -> Any:
    """Return for each group of ``rank`` dimensions the final values at all addresses."""
    combine = _COMBINE[update]

    def fill(places: Any, numbers: Any) -> list[float]:
        memory = [initial] * words
        for place, number in zip(leaves(places, rank), leaves(numbers, rank), strict=True):
            memory[place] = combine(memory[place], number)
        return memory

    return at_depth(fill, dims - rank, addresses, values)


def _parted(dims: int, tensor: Any) -> list[Any]:
    return [at_depth(lambda each, at=at: each[at], dims, tensor) for at in range(3)]

"""Map, Accum, Scan, FlatMap and Zip (Tables 5 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import accumulate
from typing import Any

from tests.definitions.tensors import at_depth, leaves


def map_values(function: Callable[..., Any], dims: int, *tensors: Any) -> Any:
    return at_depth(function, dims, *tensors)


def zip_values(dims: int, *tensors: Any) -> Any:
    return at_depth(lambda *values: values, dims, *tensors)


def accum(update: Callable[[Any, Any], Any], start: Any, dims: int, rank: int, tensor: Any) -> Any:
    """Fold the values of every group of the ``rank`` innermost dimensions."""
    return at_depth(lambda group: reduce(update, leaves(group, rank), start), dims - rank, tensor)


def scan(update: Callable[[Any, Any], Any], start: Any, dims: int, rank: int, tensor: Any) -> Any:
    """Replace every value by the fold of its group up to this value."""

    def states(group: Any) -> Any:
        folded = iter(list(accumulate(leaves(group, rank), update, initial=start))[1:])
        return at_depth(lambda _: next(folded), rank, group)

    return at_depth(states, dims - rank, tensor)


def flat_map(function: Callable[[Any], list[Any]], dims: int, tensor: Any) -> Any:
    """Replace every value by a list, and join the lists of an innermost group."""
    return at_depth(
        lambda group: [part for value in group for part in function(value)], dims - 1, tensor
    )

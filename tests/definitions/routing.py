"""Partition, Reassemble, EagerMerge and Parallelize (Table 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.definitions.tensors import at_depth, leaves


def partition(consumers: int, dims: int, tensor: Any, selectors: Any) -> list[list[Any]]:
    """Return for each consumer the sub-tensors whose selector (a set) contains it."""
    parts = list(zip(leaves(tensor, dims), leaves(selectors, dims), strict=True))
    return [[part for part, hits in parts if each in hits] for each in range(consumers)]


def reassemble(streams: Sequence[list[Any]], dims: int, selectors: Any) -> Any:
    """Return for each selector the next sub-tensor of every stream in it, by index."""
    following = [iter(stream) for stream in streams]
    return at_depth(lambda hits: [next(following[each]) for each in sorted(hits)], dims, selectors)


def merged(streams: Sequence[list[Any]], order: Sequence[int]) -> list[Any]:
    """Return the sub-tensors of ``streams`` in the order in which they are taken."""
    following = [iter(stream) for stream in streams]
    result = [next(following[each]) for each in order]
    assert all(next(each, None) is None for each in following)
    return result


def parallelize(consumers: int, tensor: list[Any]) -> list[list[Any]]:
    """Distribute the sub-tensors to the streams in turn."""
    return [tensor[each::consumers] for each in range(consumers)]

"""Flatten, Reshape, Promote, Expand and Repeat (Table 7), and Initial, which no table has."""

from __future__ import annotations

from typing import Any

from tests.definitions.tensors import at_depth, leaves


def flatten(inner: int, outer: int, dims: int, tensor: Any) -> Any:
    """Make one dimension of ``inner`` to ``outer``, counted from the innermost."""
    return at_depth(lambda part: leaves(part, outer - inner + 1), dims - 1 - outer, tensor)


def reshape(chunk: int, dimension: int, pad: Any, dims: int, tensor: Any) -> Any:
    """Cut dimension ``dimension`` into chunks, the last filled with ``pad``."""

    def chunks(part: list[Any]) -> list[list[Any]]:
        cut = [part[first : first + chunk] for first in range(0, len(part), chunk)]
        return [each + [pad] * (chunk - len(each)) for each in cut]

    return at_depth(chunks, dims - 1 - dimension, tensor)


def promote(inside: int, dims: int, tensor: Any) -> Any:
    """Add a dimension of 1 around ``inside`` dimensions; of 0 if the whole tensor is empty."""
    if inside == dims:
        return [tensor] if tensor else []
    return at_depth(lambda part: [part], dims - inside, tensor)


def repeat(count: int, dims: int, tensor: Any) -> Any:
    """Replace every value by ``count`` copies."""
    return at_depth(lambda value: [value] * count, dims, tensor)


def expand(rank: int, dims: int, tensor: Any, reference: Any) -> Any:
    """Repeat the one value of every innermost rank-``rank`` part in the reference's form."""

    def repeated(part: Any, guide: Any) -> Any:
        return at_depth(lambda _: leaves(part, rank)[0], rank, guide)

    return at_depth(repeated, dims - rank, tensor, reference)


def initial(value: Any, count: int, inner: list[int], tensor: Any, *, keep: bool) -> Any:
    """Put ``count`` tensors of size ``inner`` in front; with ``keep``, drop as many at the end."""
    front = value
    for size in reversed(inner):
        front = [front] * size
    return [front] * count + (tensor[: len(tensor) - count] if keep else tensor)

"""Walking nested lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def at_depth(function: Callable[..., Any], depth: int, *tensors: Any) -> Any:
    """Apply ``function`` to the parts that ``tensors`` have ``depth`` lists down."""
    if not depth:
        return function(*tensors)
    assert len({len(tensor) for tensor in tensors}) == 1
    return [at_depth(function, depth - 1, *parts) for parts in zip(*tensors, strict=True)]


def leaves(tensor: Any, dims: int) -> list[Any]:
    """Return the values of a tensor of ``dims`` dimensions in row-major order."""
    if not dims:
        return [tensor]
    return [value for part in tensor for value in leaves(part, dims - 1)]

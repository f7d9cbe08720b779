"""Loads, stores, Bufferize and Streamify (Tables 3 and 4), over tiles as lists of rows.

Bufferize has no definition: a buffer is the nested list of its tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from tests.definitions.tensors import at_depth, leaves


def cut(matrix: list[list[Any]], rows: int, cols: int) -> list[list[list[Any]]]:
    """Return the tiles of a matrix in row-major order."""
    return [
        [line[left : left + cols] for line in matrix[top : top + rows]]
        for top in range(0, len(matrix), rows)
        for left in range(0, len(matrix[0]), cols)
    ]


def affine(
    items: Sequence[Any], shape: Sequence[int], strides: Sequence[int], first: int = 0
) -> Any:
    """Return the tensor of ``shape`` with neighbours that are ``strides`` items apart."""
    if not shape:
        return items[first]
    return [
        affine(items, shape[1:], strides[1:], first + index * strides[0])
        for index in range(shape[0])
    ]


def per_reference(view: Any, dims: int, reference: Any) -> Any:
    """Replace every value of the reference by ``view``."""
    return at_depth(lambda _: view, dims, reference)


def stacked(dims: int, tensor: Any) -> list[list[Any]]:
    """Return a stored matrix: innermost tiles side by side, other dimensions top to bottom."""
    lines: list[list[Any]] = []
    for group in leaves(tensor, dims - 1):
        if group:
            lines += [list(chain.from_iterable(rows)) for rows in zip(*group, strict=True)]
    return lines


def streamify(
    buffers: Any,
    dims: int,
    rank: int,
    repeats: Sequence[int],
    pattern: tuple[Sequence[int], Sequence[int], int] | None,
    reference: Any = None,
    extra: int = 0,
) -> Any:
    # A buffer is read in the form of ``repeats``, or of ``reference`` with ``extra`` more
    # dimensions.
    def reading(buffer: Any) -> Any:
        return buffer if pattern is None else affine(leaves(buffer, rank), *pattern)

    if reference is not None:
        return at_depth(
            lambda buffer, guide: at_depth(lambda _: reading(buffer), extra, guide),
            dims,
            buffers,
            reference,
        )

    def again(what: Any, counts: Sequence[int]) -> Any:
        return [again(what, counts[1:]) for _ in range(counts[0])] if counts else what

    return at_depth(lambda buffer: again(reading(buffer), repeats), dims, buffers)

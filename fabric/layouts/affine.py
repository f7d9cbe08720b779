"""Sequences of numbers as nests of steps of equal size, where they are such."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fabric.arguments.described import checked, refuse
from fabric.telling.errors import ShapeError

__all__ = ["nest_of", "strides_of"]


@checked
def strides_of(numbers: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the step along each dimension of ``numbers`` in ``shape``; None where steps differ.

    Args:
        numbers: integers, one after the other.
        shape: of a tensor of as many.

    Raises:
        ShapeError: the tensor has another number of elements.
    """
    if numbers.shape != (math.prod(shape),):
        refuse(
            f"strides_of: shape {list(shape)} is given for numbers {list(numbers.shape)}: "
            "expected as many in one dimension",
            ShapeError,
        )
    grid = numbers.reshape(shape)
    strides = []
    expected = np.full((), numbers[0])
    for axis, size in enumerate(shape):
        second = tuple(int(each == axis) for each in range(len(shape)))
        stride = int(grid[second] - numbers[0]) if size > 1 else 0
        strides.append(stride)
        expected = expected[..., None] + np.arange(size) * stride
    return tuple(strides) if np.array_equal(expected, grid) else None


def nest_of(numbers: NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the fewest loops that count so, outermost first, and their steps; None without any.

    The innermost loop goes on as long as its step does: there is at most one such nest.
    """
    trips: list[int] = []
    steps: list[int] = []
    while len(numbers) > 1:
        moves = np.diff(numbers)
        others = np.flatnonzero(moves != moves[0])
        run = int(others[0]) + 1 if len(others) else len(numbers)
        if len(numbers) % run:
            return None
        rounds = numbers.reshape(-1, run)
        if not np.array_equal(
            rounds - rounds[:, :1], np.tile(rounds[0] - rounds[0, 0], (len(rounds), 1))
        ):
            return None
        trips.insert(0, run)
        steps.insert(0, int(moves[0]))
        numbers = rounds[:, 0]
    return tuple(trips), tuple(steps)

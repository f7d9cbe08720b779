"""The same elements in the same order under other dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric import Dim, Stream, product
from operators.flatten import Flatten
from operators.reshape import Reshape

__all__ = ["redimensioned"]


def redimensioned(stream: Stream, shape: Sequence[int]) -> Stream:
    """Return ``stream``, all of whose dimensions are static, as ``[*shape]``.

    Only dimensions that differ are merged and split anew: a Flatten and Reshapes for each run of
    them.
    """
    runs = list(_runs(stream.shape, tuple(shape)))
    for place, (before, after) in enumerate(runs):
        if before == after:
            continue
        inner = sum(len(old) for old, _ in runs[place + 1 :])  # dimensions that are still as before
        if len(before) > 1:
            stream = Flatten(inner, inner + len(before) - 1)(stream)
        for depth, size in enumerate(reversed(after[1:])):
            stream = Reshape(size, dimension=inner + depth)(stream)[0]
    return stream


def _runs(
    before: tuple[Dim, ...], after: tuple[int, ...]
) -> Iterator[tuple[tuple[Dim, ...], tuple[int, ...]]]:
    """Pair runs of dimensions of equal size, outermost first, each as short as it can be."""
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while (left := product(before[first:i])) != (right := product(after[second:j])):
            if (left < right or j == len(after)) and i < len(before):
                i += 1
            else:
                assert j < len(after), f"{before} has other elements than {after}"
                j += 1
        if (j == len(after) and i < len(before)) or (i == len(before) and j < len(after)):
            # Dimensions of 1 are left on one side: they belong to the last run.
            i, j = len(before), len(after)
        yield before[first:i], after[second:j]

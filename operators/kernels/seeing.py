"""How the tile of a source becomes what a view shows of it: regrouped, reordered, repeated."""

from __future__ import annotations

import math
from typing import NamedTuple

from fabric import Layout
from operators.functions.steps import Seen
from operators.kernels.tensors import View

__all__ = ["SeenTile", "seen_tile"]


class SeenTile(NamedTuple):
    """How a tile of a view comes about.

    Attributes:
        shape: of the array that comes.
        steps: what makes of it an array that broadcasts to the tile of the view.
    """

    shape: tuple[int, ...]
    steps: tuple[Seen, ...]


def seen_tile(view: View, layout: Layout, value: int) -> SeenTile | None:
    """Return how tiles of ``view`` come about, when they are read in ``layout``.

    Args:
        view: what is read.
        layout: over its shape.
        value: the number that the operand has in its chain; the steps that follow it there are
            taken to have the numbers behind it.

    Returns:
        None where no walk of the source expresses it.
    """
    pulled, walked = view.pull(layout), view.walked(layout)
    if pulled is None:
        return None
    shown = (walked[0][1] if walked else layout).tile
    real = shown
    if pulled.transposed:
        # The wiring hands on the transpose of the source's tile, as rows and columns.
        real = (math.prod(shown[-1:]), math.prod(shown[:-1]))
    shape = real
    steps: list[Seen] = []

    def put(step: Seen) -> None:
        steps.append(step)

    def read() -> tuple[int]:
        return (value + len(steps),)

    if pulled.transposed:
        put(Seen(read(), view.dtype, order=(1, 0), regrouped=shown))
        real = shown
    for step, before, after in walked:
        if step.order is not None:
            turned = tuple(shown[dim] for dim in step.order)
            if _moved(shown, step.order):
                if real != shown:
                    put(Seen(read(), view.dtype, regrouped=shown))
                put(Seen(read(), view.dtype, order=step.order))
                real = turned
            shown = turned
        elif step.repeats:
            shown = (1,) * (len(after.tile) - len(shown)) + shown
        elif after.tile != before.tile:
            if shown != before.tile:
                if real != shown:
                    put(Seen(read(), view.dtype, regrouped=shown))
                put(Seen(read(), view.dtype, repeated=before.tile))
                real = before.tile
            shown = after.tile
    if real != shown and steps:
        put(Seen(read(), view.dtype, regrouped=shown))
    elif real != shown:
        shape = shown
    return SeenTile(shape, tuple(steps))


def _moved(shape: tuple[int, ...], order: tuple[int, ...]) -> bool:
    """Whether elements of an array change places where its dimensions are put in ``order``."""
    kept = [dim for dim in order if shape[dim] > 1]
    return kept != sorted(kept)

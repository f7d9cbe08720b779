"""Random layouts, and the tiles of streams with them, computed by loops in Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout


@st.composite
def layouts(draw: st.DrawFn, most_rank: int = 3, most_loops: int = 4) -> Layout:
    """Draw a layout with split, repeated and uneven loops, a start, and unused parts."""
    rank = draw(st.integers(1, most_rank))
    tile = [draw(st.sampled_from((1, 1, 2, 3))) for _ in range(rank)]
    end = list(tile)
    loops: list[tuple[int, int, int | None]] = []
    # From the innermost loop out: a step usually begins where the inner loops of its dimension end.
    for _ in range(draw(st.integers(0, most_loops))):
        trips = draw(st.sampled_from((1, 2, 2, 3)))
        dim = draw(st.sampled_from((*range(rank), *range(rank), None)))
        step = 1
        if dim is not None:
            step = draw(st.sampled_from((end[dim], end[dim], end[dim], tile[dim], 1)))
            end[dim] += (trips - 1) * step
        at = draw(st.sampled_from((0, 0, 0, len(loops))))
        loops.insert(at, (trips, step, dim))
    start = [draw(st.sampled_from((0, 0, 0, 1, 2))) for _ in range(rank)]
    spare = [draw(st.sampled_from((0, 0, 0, 1, 2))) for _ in range(rank)]
    return Layout(
        tuple(map(sum, zip(start, end, spare, strict=True))),
        tuple(tile),
        tuple(loop[0] for loop in loops),
        tuple(loop[1] for loop in loops),
        tuple(loop[2] for loop in loops),
        tuple(start),
    )


def places(layout: Layout) -> list[tuple[int, ...]]:
    """Return the first element of each tile, loop by loop."""
    firsts = []
    for round_ in itertools.product(*map(range, layout.trips)):
        place = list(layout.start)
        for trip, step, dim in zip(round_, layout.steps, layout.map, strict=True):
            if dim is not None:
                place[dim] += trip * step
        firsts.append(tuple(place))
    return firsts


def streamed(x: NDArray[Any], layout: Layout) -> list[NDArray[Any]]:
    """Return the tiles of ``x`` in the order of ``layout``."""
    assert x.shape == layout.shape
    return [
        x[tuple(slice(at, at + size) for at, size in zip(place, layout.tile, strict=True))]
        for place in places(layout)
    ]


def tensor(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)

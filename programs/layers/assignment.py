"""The assignment of work to regions: before the run, or to the first free region."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import Stream
from operators import Consumer, Flatten, Partition, Reassemble, Selectors


def assigned(free: Stream, count: int, regions: int) -> Stream:
    """Return the region of each of ``count`` requests: all in turn, then the first free one.

    Args:
        free: [count], a one-hot selector for each request that a region is done with.
        count: of the requests.
        regions: how many there are.

    Returns:
        [1, count] of one-hot selectors.
    """
    started = min(regions, count)
    # The last tokens have no request.
    spare = np.repeat([1, 0], [count - started, started])
    unused, asking = Partition(2)(free, Flatten(0, 1)(stated(spare, 2)))
    Consumer()(unused)
    first = Flatten(0, 1)(stated(np.arange(started), regions))  # [started]
    order = stated(np.repeat([0, 1], [started, count - started]), 2)  # [1, count]
    return Flatten(0, 1)(Reassemble()([first, asking], order))  # [1, count, 1] -> [1, count]


def stated(numbers: NDArray[np.int64], width: int) -> Stream:
    """[1, len(numbers)] of one-hot selectors."""
    return Selectors(numbers[:, np.newaxis], width)()

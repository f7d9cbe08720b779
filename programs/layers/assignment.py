"""The assignment of work to regions: before the run, or to the first free region."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import Stream
from operators import Consumer, Flatten, Partition, Reassemble, Selectors


def assigned(free: Stream, count: int, regions: int) -> Stream:
    """Assign one request to each region, and then each request to the first free region.

    Args:
        free: [count], a one-hot selector of a region for each request that the region completes.
        count: the number of requests.
        regions: the number of regions.

    Returns:
        One-hot selectors of the region of each request, [1, count].
    """
    started = min(regions, count)
    # No request is left for the regions that become free last.
    spare = np.repeat([1, 0], [count - started, started])
    unused, asking = Partition(2)(free, Flatten(0, 1)(stated(spare, 2)))
    Consumer()(unused)
    first = Flatten(0, 1)(stated(np.arange(started), regions))  # [started]
    order = stated(np.repeat([0, 1], [started, count - started]), 2)  # [1, count]
    return Flatten(0, 1)(Reassemble()([first, asking], order))  # [1, count, 1] -> [1, count]


def stated(numbers: NDArray[np.int64], width: int) -> Stream:
    """Return one-hot selectors of ``numbers``, [1, len(numbers)]."""
    return Selectors(numbers[:, np.newaxis], width)()

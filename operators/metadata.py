"""Metadata: a source of integers, such as the lengths of requests.

Source: the authors' artifact (its metadata generator); not in the paper's tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import ShapeError, Stream, StreamType
from fabric.extend import Costs, Operator, Ports, Rates, Wiring, Work
from operators.tiles.integers import INTEGER, integer
from operators.tiles.row_major import positions

__all__ = ["Metadata", "mean_of_metadata"]


@dataclass(frozen=True)
class Metadata(Operator):
    """Emit every number of ``values``.

    Shapes:
        output: [1, *values.shape] of 1x1 tiles.

    Timing:
        Element k is visible at cycle k, or later if its reader delays it.

    Memory:
        None.

    Attributes:
        values: the integers, none below 0.

    Example:
        >>> with Program("example") as program:
        ...     lengths = Metadata(np.array([5, 0, 3]))()
        ...     Consumer()(lengths)
        >>> print(lengths.type)
        [1, 3] of 1x1 uint64
        >>> print(simulate(program).cycles)
        4
    """

    conducted: ClassVar[bool] = True

    values: np.ndarray

    def __call__(self) -> Stream:
        """Return the stream of integers."""
        (result,) = self.wire()
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        values = self.values
        if not values.ndim or not np.issubdtype(values.dtype, np.integer):
            raise ShapeError(
                f"Metadata is given an array {list(values.shape)} of {values.dtype}: "
                "expected integers in at least one dimension"
            )
        if values.size and int(values.min()) < 0:
            raise ShapeError(f"Metadata is given {int(values.min())}: expected no number below 0")
        return (StreamType((1, *values.shape), INTEGER),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work()

    @override
    async def run(self, ports: Ports) -> None:
        sink, start = ports.sink, ports.start
        numbers = self.values.reshape(math.prod(self.values.shape)).tolist()
        for cycle, (_, stop, empty_dimension) in enumerate(positions(self.values.shape)):
            if empty_dimension is not None:
                await sink.send_bare(stop, empty_dimension)
            else:
                await sink.send_at((integer(numbers[cycle]), stop), start + cycle)


def mean_of_metadata(stream: Stream) -> Fraction | None:
    """Return the mean of the integers that ``stream`` has, where they come from a Metadata."""
    source = stream.node.operator if stream.node is not None else None
    if not isinstance(source, Metadata):
        return None
    return Fraction(sum(source.values.ravel().tolist()), max(1, source.values.size))

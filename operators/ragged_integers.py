"""RaggedIntegers: a source of lists of integers of any length, such as a graph's neighbours.

Source: the ragged dimensions of Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1; the
operator is not in the paper's tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fabric import ShapeError, Stream, StreamType
from fabric.extend import Costs, Operator, Ports, Rates, Wiring, Work
from operators.tiles.integers import INTEGER, integer

__all__ = ["RaggedIntegers"]

_LARGEST = int(np.iinfo(INTEGER.dtype).max)


@dataclass(frozen=True)
class RaggedIntegers(Operator):
    """Emit the numbers of ``lists``.

    Shapes:
        output: [1, len(lists), n] of 1x1 tiles, n ragged.

    Timing:
        One cycle per element.

    Memory:
        None.

    Attributes:
        lists: lists of integers, none below 0; a list may be empty.

    Example:
        >>> with Program("example") as program:
        ...     places = RaggedIntegers([[0, 3], [], [7]])()
        ...     Consumer()(places)
        >>> print(places.type)
        [1, 3, D_ragged_integers_1~] of 1x1 uint64
        >>> print(simulate(program).elements)
        3
    """

    conducted: ClassVar[bool] = True

    lists: Sequence[Sequence[int]]

    def __call__(self) -> Stream:
        """Return the stream of integers."""
        (result,) = self.wire()
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        lists = self._lists()
        for place, numbers in enumerate(lists):
            for number in numbers:
                whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
                if not whole or not 0 <= number <= _LARGEST:
                    raise ShapeError(
                        f"RaggedIntegers is given {number!r} in list {place}: "
                        f"expected integers from 0 to {_LARGEST:,}"
                    )
        mean = Fraction(sum(map(len, lists)), max(1, len(lists)))
        length = wiring.symbol(f"D_{wiring.node_name}", ragged=True, size=mean)
        return (StreamType((1, len(lists), length), INTEGER),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work(cycles=outputs[0].count - 1)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.unit
        lists = self._lists()
        if not lists:
            await sink.send_bare(2, 1)
        for number, numbers in enumerate(lists):
            closing = 2 if number == len(lists) - 1 else 1
            if not numbers:
                await sink.send_bare(closing, 0)
            for place, each in enumerate(numbers):
                await sink.send((integer(each), closing if place == len(numbers) - 1 else 0))
                unit.charge(1)

    def _lists(self) -> list[list[Any]]:
        """Return the lists as Python's own; of what the user put in them, whatever it is.

        Raises:
            ShapeError: they are something else.
        """
        try:
            return [list(numbers) for numbers in self.lists]
        except TypeError:
            raise ShapeError(
                f"RaggedIntegers is given {self.lists!r}: expected a list of lists of integers"
            ) from None

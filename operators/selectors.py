"""Selectors: a source of multi-hot selectors, from routing decisions that are known.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1 (selector streams).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Stream, StreamType
from fabric.extend import Bounds, Costs, Operator, Ports, Rates, Wiring, Work
from operators.tiles.row_major import positions

__all__ = ["Selectors"]


@dataclass(frozen=True)
class Selectors(Operator):
    """Emit one selector for every row of ``choice``, one per cycle.

    Shapes:
        output: [1, *choice.shape[:-1]] of selectors.

    Timing:
        One cycle per element.

    Memory:
        None.

    Attributes:
        choice: integers [..., k], the streams that each selector names; no stream twice in a row.
        width: how many streams there are to select from.

    Example:
        >>> with Program("example") as program:
        ...     route = Selectors(np.array([[0, 2], [1, 2]]), width=3)()
        ...     Consumer()(route)
        >>> print(route.type)
        [1, 2] of selector of 3
        >>> print(simulate(program).cycles)
        3
    """

    conducted: ClassVar[bool] = True

    choice: np.ndarray
    width: Annotated[int, Bounds(0)]

    def __call__(self) -> Stream:
        """Return the stream of selectors."""
        (result,) = self.wire()
        return result

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        choice = self.choice
        if choice.ndim < 2 or not np.issubdtype(choice.dtype, np.integer):
            raise ShapeError(
                f"Selectors is given an array {list(choice.shape)} of {choice.dtype}: "
                "expected integers [..., k]"
            )
        if choice.size and not 0 <= int(choice.min()) <= int(choice.max()) < self.width:
            raise ShapeError(
                f"Selectors names streams {int(choice.min())} to {int(choice.max())}: "
                f"expected 0 to {self.width - 1}"
            )
        ascending = np.sort(choice, axis=-1)
        twice = np.argwhere(ascending[..., 1:] == ascending[..., :-1])
        if len(twice):
            place = tuple(twice[0].tolist())
            raise ShapeError(
                f"Selectors names stream {ascending[place]} twice in row {list(place[:-1])}: "
                "expected each at most once"
            )
        return (StreamType((1, *choice.shape[:-1]), SelectorType(self.width, choice.shape[-1])),)

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
        shape = self.choice.shape[:-1]
        rows = self.choice.reshape(math.prod(shape), self.choice.shape[-1])
        for number, (_, stop, empty_dimension) in enumerate(positions(shape)):
            if empty_dimension is not None:
                await sink.send_bare(stop, empty_dimension)
                continue
            hits = tuple(sorted(rows[number].tolist()))
            await sink.send((Selector(hits, self.width), stop))
            unit.charge(1)

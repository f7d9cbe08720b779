"""Consumer: where a stream ends whose elements nobody needs.

Source: the authors' artifact (its consumer context); not in the paper's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from fabric import Stream, StreamType
from fabric.extend import Costs, Empty, Operator, Ports, Rates, Wiring, Work, drop

__all__ = ["Consumer"]


@dataclass(frozen=True)
class Consumer(Operator):
    """Dequeue every element of a stream.

    Shapes:
        source: [D_a, ..., D_0] of anything.

    Timing:
        One cycle per element.

    Memory:
        None.

    Example:
        >>> with Program("example") as program:
        ...     Consumer()(Metadata(np.arange(100))())
        >>> print(simulate(program).cycles)
        101
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True

    def __call__(self, source: Stream) -> None:
        """End ``source``."""
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return Work(cycles=inputs[0].count, last_cycles=1)

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            drop(element[0], ports.unit.now)
            if not isinstance(element[0], Empty):
                ports.unit.charge(1)
            ports.turn()

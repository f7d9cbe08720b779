"""The pipeline whose transfers are counted per second: relays in a row, no work."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import BoolType, Costs, Operator, Ports, Program, Stream, StreamType, Wiring

__all__ = ["pipeline"]


@dataclass(frozen=True)
class _Stage(Operator):
    """Send ``count`` elements, or what comes, or nothing."""

    count: int = 0
    last: bool = False

    def __call__(self, *source: Stream) -> Stream | None:
        """Return the stream, where there is one."""
        outputs = self.wire(*source)
        return outputs[0] if outputs else None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return () if self.last else (StreamType((1, self.count), BoolType()),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    async def run(self, ports: Ports) -> None:
        if not ports.inputs:
            for number in range(self.count):
                await ports.sink.send((True, 2 * (number == self.count - 1)))
            return
        receive = ports.source.receive
        if self.last:
            while await receive() is not None:
                pass
            return
        send = ports.sink.send
        while (element := await receive()) is not None:
            await send(element)


def pipeline(stages: int, depth: int, elements: int) -> Program:
    """Return a program of ``stages`` operators in a row that passes ``elements`` on."""
    with Program("pipeline", channel_depth=depth) as program:
        stream = _Stage(elements)()
        for _ in range(stages - 2):
            assert stream is not None
            stream = _Stage(elements)(stream)
        assert stream is not None
        _Stage(last=True)(stream)
    return program

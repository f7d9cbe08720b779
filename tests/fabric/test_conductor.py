"""The conductor: operators of the fabric's own that have ended are trio's again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from trio.lowlevel import current_task
from typing_extensions import override

from fabric import Program, Stream, StreamType, simulate
from fabric.extend import Operator, Ports, Wiring
from operators import Metadata
from tests.fabric.scripted import Ticks

LONG = 5_000


@dataclass(frozen=True)
class _Census(Operator):
    counts: list[int] = field(default_factory=list)

    def __call__(self, short: Stream, long: Stream) -> None:
        self.wire(short, long)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()

    @override
    async def run(self, ports: Ports) -> None:
        short, long = ports.inputs
        await short.receive()
        self._count()
        while await short.receive() is not None:
            pass
        for _ in range(LONG - 10):
            await long.receive()
        self._count()
        while await long.receive() is not None:
            pass

    def _count(self) -> None:
        nursery = current_task().parent_nursery
        assert nursery is not None
        self.counts.append(len(nursery.child_tasks))


def test_task_of_an_operator_that_has_ended() -> None:
    census = _Census()
    with Program("census") as program:
        census(Metadata(np.arange(10))(), Ticks(LONG)())
    report = simulate(program)

    assert report.status == "completed"
    before, after = census.counts
    assert before - 1 == after

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from typing_extensions import override

from fabric import Hardware, Hop, Program, simulate
from fabric.extend import ChannelDescription, Ports
from fabric.graph.hardware.latency import Mesh
from fabric.graph.wiring.program import hardware_scope
from tests.bases import Sink
from tests.fabric.scripted import Ticks
from tests.profiles import spread

COUNT = 5
WORK_CYCLES = 1_000


@dataclass(frozen=True)
class _Taker(Sink):
    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            pass


@dataclass(frozen=True)
class _Listener(Sink):
    conducted = True

    clocks: list[int]

    @override
    async def run(self, ports: Ports) -> None:
        unit, source = ports.unit, ports.source
        unit.charge(WORK_CYCLES)
        for _ in range(COUNT):
            if not source.queue:
                await ports.clock.reach(unit, unit.now, watching=(source,))
            assert source.head_cycle <= unit.now
            assert source.hear() == (True, 0)
        self.clocks.append(unit.now)


@pytest.mark.parametrize("depth", spread([1, 2, 8], 1))
@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("mesh", [None, Mesh(columns=2, rows=2, hop_cycles=3)])
def test_transfers_heard_are_those_of_a_reader_that_takes(
    depth: int, interval: int, mesh: Mesh | None, tmp_path: Path
) -> None:
    hardware = Hardware(channel=ChannelDescription(interval_cycles=interval), network=mesh)
    hops = {} if mesh else {"reader.0": Hop(2, 3)}
    clocks: list[int] = []
    found = []
    for number, reader in enumerate((_Taker(name="reader"), _Listener(clocks, name="reader"))):
        with hardware_scope(hardware), Program("heard") as program:
            reader(Ticks(COUNT)())
        report = simulate(
            program, depths={"reader.0": depth}, hops=hops, trace="events",
            log_dir=tmp_path / str(number),
        )  # fmt: skip
        query = "SELECT sent_cycle, taken_cycle FROM transfers ORDER BY element"
        found.append(report.trace().query(query).rows())

    assert len(found[0]) == COUNT
    assert found[0] == found[1]
    assert clocks == [WORK_CYCLES]

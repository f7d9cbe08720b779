from __future__ import annotations

from dataclasses import replace

import pytest

from fabric.analysis.trace.opened import Trace
from fabric.extend import BusCycles, ChannelTraffic, ClientTraffic, MemoryCounters, Stalls
from tests.fabric.trace.recording import record
from tests.memories.counting import CountingDescription, loads

HBM = CountingDescription()
QUIET = BusCycles(data=800, refresh=0, turnaround=0, window=0, conflict=0, idle=200)

SENTENCES = {
    "window": "Window full",
    "commands": "Rows and commands",
    "conflicts": "Row conflicts",
    "channels": "Channels",
    "turnaround": "Turnaround",
    "refresh": "Refresh",
    "idle": "Idle",
}


def counted(
    bus: BusCycles = QUIET, conflicts: int = 0, served: tuple[int, ...] = (100, 100)
) -> MemoryCounters:
    nothing = BusCycles(0, 0, 0, 0, 0, 0)
    channels = [ChannelTraffic(each, 0, each - conflicts, 0, conflicts, nothing) for each in served]
    channels[0] = replace(channels[0], bus=bus)
    clients = (
        ClientTraffic(0, 80, 70, 4, 6, 1000, 40, 2000),
        ClientTraffic(1, 0, 0, 0, 0, 0, 0, 0),
        # The unit did not wait.
        ClientTraffic(2, 9, 9, 0, 0, 0, 0, 9),
        ClientTraffic(3, 4, 1, 1, 2, 0, 6, 88),
    )
    return MemoryCounters(tuple(channels), clients, 1000, (bus,))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(loads(HBM), tmp_path_factory.mktemp("run"))[1]


@pytest.fixture
def stalls(request: pytest.FixtureRequest, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Stalls:
    monkeypatch.setattr(trace, "hbm", request.param)
    return trace.stalls()


def bus(**cycles: int) -> BusCycles:
    return replace(QUIET, **({"idle": 0, "data": 1000 - sum(cycles.values())} | cycles))


@pytest.mark.parametrize(
    ("stalls", "said"),
    [
        (counted(), ()),
        (counted(bus(window=99)), ()),
        (counted(bus(window=100)), ("window",)),
        (counted(bus(window=100, conflict=100)), ("commands",)),
        (counted(bus(conflict=99)), ()),
        (counted(bus(conflict=100)), ("commands",)),
        (counted(bus(window=100), 19), ("window",)),
        (counted(bus(window=100), 20), ("window", "conflicts")),
        (counted(bus(turnaround=49, refresh=49)), ()),
        (counted(bus(turnaround=50)), ("turnaround",)),
        (counted(bus(refresh=50)), ("refresh",)),
        (counted(bus(idle=499)), ()),
        (counted(bus(idle=500)), ("idle",)),
        (counted(served=(149, 50, 100)), ()),
        (counted(served=(150, 50, 100)), ("channels",)),
    ],
    indirect=["stalls"],
)
def test_findings_follow_their_thresholds(stalls: Stalls, said: tuple[str, ...]) -> None:
    assert stalls.hbm is not None
    figures, requests, *sentences = stalls.hbm.findings
    assert figures.startswith("Cycles of its buses: data ")
    assert requests.startswith("Of its requests: row hits ")
    assert [SENTENCES[each] for each in said] == [each.split(":")[0] for each in sentences]

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fabric import simulate
from fabric.analysis.trace.opened import Trace
from fabric.display.terminal import plain_text
from fabric.extend import (
    BusCycles,
    ChannelTraffic,
    ClientTraffic,
    MemoryCounters,
    Stalls,
)
from tests.fabric.trace.recording import record
from tests.memories.counting import CountingDescription, CountingMemory, loads

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
        # Did not wait.
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
        (counted(bus(window=101, conflict=100)), ("window", "commands")),
        (counted(bus(window=100, conflict=100)), ("commands",)),
        (counted(bus(conflict=99)), ()),
        (counted(bus(conflict=100)), ("commands",)),
        (counted(bus(window=100), 19), ("window",)),
        (counted(bus(window=100), 20), ("window", "conflicts")),
        (counted(bus(conflict=100), 20), ("commands", "conflicts")),
        (counted(bus(conflict=99), 100), ()),
        (counted(bus(turnaround=49, refresh=49)), ()),
        (counted(bus(turnaround=50)), ("turnaround",)),
        (counted(bus(refresh=50)), ("refresh",)),
        (counted(bus(idle=499)), ()),
        (counted(bus(idle=500)), ("idle",)),
        (counted(served=(149, 50, 100)), ()),
        (counted(served=(150, 50, 100)), ("channels",)),
        (counted(served=(99, 0, 0)), ()),
        (counted(served=(1000,)), ()),
    ],
    indirect=["stalls"],
)
def test_findings_follow_their_thresholds(stalls: Stalls, said: tuple[str, ...]) -> None:
    assert stalls.hbm is not None
    figures, requests, *sentences = stalls.hbm.findings
    assert figures.startswith("Cycles of its buses: data ")
    assert requests.startswith("Of its requests: row hits ")
    assert [SENTENCES[each] for each in said] == [each.split(":")[0] for each in sentences]


@pytest.mark.parametrize("stalls", [counted()], indirect=True)
def test_means_of_a_unit_are_per_request(stalls: Stalls) -> None:
    assert stalls.hbm is not None
    left, store = stalls.hbm.units
    waited = {unit.name: unit.hbm_cycles for unit in stalls.units}

    assert (left.name, left.requests, left.hbm_cycles) == ("left", 80, waited["left"])
    assert (12.5, 0.5, 25.0, 7.5) == (
        left.queued_cycles, left.waiting_cycles, left.serving_cycles, left.conflict_percent,
    )  # fmt: skip
    assert (store.name, store.requests, store.serving_cycles) == ("store", 4, 22.0)
    assert _printed(stalls, 120).splitlines()[1:4] == [
        "unit   HBM  requests  outside  in it  served  conflicts, %",
        "left   400        80     12.5    0.5    25.0           7.5",
        "store  400         4      0.0    1.5    22.0          50.0",
    ]


class TestReport:
    def test_report_prints_bus_cycles_rows_and_uneven_channels(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = counted(bus(window=250, refresh=50), 25, (300, 100, 50))
        monkeypatch.setattr(CountingMemory, "counters", lambda _: found)
        assert _section(100) == [
            "cycles of HBM buses     %",
            "data                 70.0",
            "refresh               5.0",
            "window full          25.0",
            "row hits 375 (83.3 %), misses 0 (0.0 %), conflicts 75 (16.7 %)",
            "channel 0 served 300 requests, 2.0 times the mean; channel 2 the fewest, 50",
        ]


def _section(width: int) -> list[str]:
    text = plain_text(simulate(loads(HBM)).sheet(), width)
    found = re.search(r"\n\n(cycles of HBM buses.*?)\n\n", text, re.DOTALL)
    return [] if found is None else found[1].splitlines()


def _printed(stalls: Stalls, width: int) -> str:
    text = plain_text(stalls.sheet(10), width)
    return text[text.index("Why the HBM was slow") :] if "Why the" in text else ""

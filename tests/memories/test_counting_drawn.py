from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from fabric import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.pages.page import write_page
from fabric.extend import BusCycles
from fabric.messages.causes import BusUse
from tests.fabric.trace.browsing import browsing
from tests.fabric.trace.page_data import page_data
from tests.fabric.trace.recording import record
from tests.memories.counting import PERIOD_CYCLES, CountingDescription, loads

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HBM = CountingDescription(channels=5)
USES = [each.name for each in fields(BusCycles)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(loads(HBM), tmp_path_factory.mktemp("run"))[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


class TestData:
    def test_counters_are_drawn_in_percent(self, trace: Trace, tmp_path: Path) -> None:
        data, counters = _inside(trace, tmp_path), trace.hbm
        assert counters is not None
        uses = [use for use in USES if getattr(counters.bus, use)]

        assert [BusUse(use).label for use in uses] == [use["label"] for use in data["uses"]]
        assert "rows and commands" not in [use["label"] for use in data["uses"]]
        assert [*range(0, trace.cycles, PERIOD_CYCLES), trace.cycles] == data["edges"]
        for period, *shares in zip(counters.periods, *data["shares"], strict=True):
            _check(shares, period, uses)
        for channel, shown in zip(counters.channels, data["channels"], strict=True):
            _check(shown["shares"], channel.bus, uses)
            assert shown["requests"] == channel.reads + channel.writes
            assert shown["rows"] == [channel.row_hits, channel.row_misses, channel.row_conflicts]
        assert ["0", "1", "2", "3", "4"] == [shown["name"] for shown in data["channels"]]


class TestPerfetto:
    def test_perfetto_has_a_counter_for_each_use(self, trace: Trace, tmp_path: Path) -> None:
        found, counters = _tracks(trace, tmp_path), trace.hbm
        assert counters is not None
        starts = [number * PERIOD_CYCLES for number in range(len(counters.periods))]
        for use in USES:
            cycles = [getattr(period, use) for period in counters.periods]
            expected = [*zip(starts, cycles, strict=True), (trace.cycles, 0)]
            assert found.get(BusUse(use).label, []) == (expected if any(cycles) else [])


def _inside(trace: Trace, folder: Path) -> Any:
    write_page(trace, folder / "run.html")
    return page_data((folder / "run.html").read_text("utf-8"))["buses"]


def _check(shares: list[float], bus: BusCycles, uses: list[str]) -> None:
    total = sum(getattr(bus, use) for use in USES)
    assert shares == pytest.approx([100 * getattr(bus, use) / total for use in uses], abs=0.006)
    assert sum(shares) == pytest.approx(100, abs=0.05)


def _tracks(trace: Trace, folder: Path) -> dict[str, list[tuple[int, int]]]:
    export_trace(trace, "perfetto", folder / "run.perfetto")
    message: Any = TraceMessage()
    message.ParseFromString((folder / "run.perfetto").read_bytes())
    names = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in message.packet
        if packet.HasField("track_descriptor")
    }
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for packet in message.packet:
        event = packet.track_event
        if event.type == TrackEvent.TYPE_COUNTER:
            found[names[event.track_uuid]].append((packet.timestamp, event.counter_value))
    return found

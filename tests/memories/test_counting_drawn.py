"""What is drawn of a memory that counts: in the page of a run, and for Perfetto."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

from fabric import Hardware, Program, export_trace, hardware_scope
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.pages import figures
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import BankedDescription, BusCycles, FlatDescription
from fabric.messages.telling.causes import BusUse
from fabric.timing.state.resource_use import row_outcomes
from operators import Consumer, Metadata
from tests.fabric.trace.browsing import Shown, browsing
from tests.fabric.trace.page_data import page_data
from tests.fabric.trace.recording import record
from tests.memories.counting import PERIOD_CYCLES, CountingDescription, loads

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HBM = CountingDescription(channels=5)
USES = [each.name for each in fields(BusCycles)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return that of a run whose memory counts."""
    return record(loads(HBM), tmp_path_factory.mktemp("run"))[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests."""
    with browsing() as found:
        yield found


class TestData:
    """What is inside a page."""

    def test_counters(self, trace: Trace, tmp_path: Path) -> None:
        """Each period and each channel in percent of its cycles, for all uses there were."""
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

    def test_many(self, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neighbours are one where there are too many: all are counted once."""
        monkeypatch.setattr(figures, "_BARS", 3)
        monkeypatch.setattr(figures, "_STRETCHES", 4)
        data, counters = _inside(trace, tmp_path), trace.hbm
        assert counters is not None

        assert ["0 to 1", "2 to 3", "4"] == [shown["name"] for shown in data["channels"]]
        assert counters.requests == sum(shown["requests"] for shown in data["channels"])
        assert [0, 3 * PERIOD_CYCLES, 6 * PERIOD_CYCLES, trace.cycles] == data["edges"]
        three = [sum(getattr(each, use) for use in USES) for each in counters.periods[:3]]
        carried = sum(each.data for each in counters.periods[:3])
        assert abs(100 * carried / sum(three) - data["shares"][0][0]) < 0.01
        assert "in stretches of 192 cycles" in data["note"]

    def test_findings(self, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What slowed it, where somebody waited for it; else what became of its requests."""
        assert trace.hbm is not None
        became = row_outcomes(trace.hbm)
        first, second, *_ = _inside(trace, tmp_path)["findings"]
        assert first.startswith("Cycles of its buses: ")
        assert second == f"Of its requests: {became}."
        monkeypatch.setattr(figures, "slow_memory_of", lambda *_: None)
        assert _inside(trace, tmp_path)["findings"] == [became]

    def test_flat(self, tmp_path: Path) -> None:
        """A model that counts nothing has nothing there."""
        _, flat = record(loads(FlatDescription()), tmp_path)
        write_page(flat, tmp_path / "run.html")
        assert "buses" not in page_data((tmp_path / "run.html").read_text("utf-8"))

    def test_unused(self, tmp_path: Path) -> None:
        """Nor has one that counts, of a run in which nobody asks it for anything."""
        with hardware_scope(Hardware(hbm=BankedDescription())), Program("unused") as program:
            Consumer()(Metadata(np.arange(4))())
        _, unused = record(program, tmp_path)
        write_page(unused, tmp_path / "run.html")
        assert "buses" not in page_data((tmp_path / "run.html").read_text("utf-8"))


class TestPage:
    """What a browser shows."""

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1300, 420])
    def test_shown(
        self, trace: Trace, browser: Browser, tmp_path: Path, scheme: str, width: int
    ) -> None:
        """A bar for each channel, whose parts are its shares, and nothing cut off."""
        shown = Shown(
            browser, trace, tmp_path, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        assert shown.page.locator("#buses-of").is_visible()
        heights = shown.page.evaluate(
            "[...document.querySelectorAll('#buses-channels > div')].map((bar) => "
            "[...bar.querySelectorAll('i')].map((it) => it.getBoundingClientRect().height))"
        )
        for parts, channel in zip(heights, shown.data["buses"]["channels"], strict=True):
            assert parts == pytest.approx([1.2 * share for share in channel["shares"]], abs=0.1)
        right = shown.page.evaluate(
            "Math.max(...[...document.querySelectorAll('#buses-of *')].map("
            "(it) => it.getBoundingClientRect().right))"
        )
        assert right <= width
        title = shown.page.locator("#buses-channels > div").nth(1).get_attribute("title")
        assert title is not None
        assert title.startswith("channel 1: data ")
        assert not shown.troubles
        shown.page.close()

    def test_follows_the_theme(self, trace: Trace, browser: Browser, tmp_path: Path) -> None:
        """Idleness recedes in the dark, in bars as in the legend of the chart."""
        shown = Shown(browser, trace, tmp_path, color_scheme="light")
        idle = (
            "getComputedStyle(document.querySelector('#buses-channels i:last-child'))"
            ".backgroundColor"
        )
        before = shown.page.evaluate(idle)
        shown.page.click("#theme")
        shown.settle()
        assert before != shown.page.evaluate(idle)
        shown.page.close()

    def test_hidden(self, browser: Browser, tmp_path: Path) -> None:
        """A model that counts nothing has no such section."""
        _, flat = record(loads(FlatDescription()), tmp_path)
        shown = Shown(browser, flat, tmp_path)
        assert not shown.page.locator("#buses-of").is_visible()
        assert not shown.troubles
        shown.page.close()


class TestPerfetto:
    """Counters for Perfetto."""

    def test_counters(self, trace: Trace, tmp_path: Path) -> None:
        """A counter for each use there was, a value for each period, and 0 in the end."""
        found, counters = _tracks(trace, tmp_path), trace.hbm
        assert counters is not None
        starts = [number * PERIOD_CYCLES for number in range(len(counters.periods))]
        for use in USES:
            cycles = [getattr(period, use) for period in counters.periods]
            expected = [*zip(starts, cycles, strict=True), (trace.cycles, 0)]
            assert found.get(BusUse(use).label, []) == (expected if any(cycles) else [])

    def test_window(self, tmp_path: Path) -> None:
        """Of some cycles, the periods that touch them."""
        _, trace = record(loads(HBM), tmp_path, TraceOptions(window=(100, 200)))
        found = _tracks(trace, tmp_path)
        assert [100, 128, 192, 201] == [cycle for cycle, _ in found["data"]]

    def test_opened(self, trace: Trace, tmp_path: Path) -> None:
        """Perfetto, where it is, finds them by their names, below the HBM's."""
        shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
        if shell is None:
            pytest.skip("no trace_processor")
        export_trace(trace, "perfetto", tmp_path / "run.perfetto")
        config = TraceProcessorConfig(bin_path=shell)
        with TraceProcessor(trace=str(tmp_path / "run.perfetto"), config=config) as opened:
            rows = opened.query(
                "SELECT t.name, sum(c.value) AS total FROM counter c JOIN counter_track t "
                "ON c.track_id = t.id GROUP BY t.name"
            )
            totals = {row.name: row.total for row in rows}
        counters = trace.hbm
        assert counters is not None
        assert counters.bus.data == totals["data"]
        assert counters.bus.window == totals["window full"]

    def test_flat(self, tmp_path: Path) -> None:
        """A model that counts nothing has none."""
        _, flat = record(loads(FlatDescription()), tmp_path)
        assert not {use.label for use in BusUse} & _tracks(flat, tmp_path).keys()


def _inside(trace: Trace, folder: Path) -> Any:
    write_page(trace, folder / "run.html")
    return page_data((folder / "run.html").read_text("utf-8"))["buses"]


def _check(shares: list[float], bus: BusCycles, uses: list[str]) -> None:
    total = sum(getattr(bus, use) for use in USES)
    assert shares == pytest.approx([100 * getattr(bus, use) / total for use in uses], abs=0.006)
    assert sum(shares) == pytest.approx(100, abs=0.05)


def _tracks(trace: Trace, folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Return the values of each counter, by its name."""
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

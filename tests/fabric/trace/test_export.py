"""Other forms of a trace, read back by parsers that are not ours."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
from structlog.testing import LogCapture
from vcdvcd import VCDVCD

from fabric.analysis.trace.analysis.timeline import STATES, slices, timelines
from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.reading.paths import system_errors
from fabric.messages.telling.vocabulary import EVENTS
from tests.fabric.trace.recording import pairs, program, record
from tests.telling import captured

WHOLE = ["simplified_moe", "swiglu", "pack_rows"]


@pytest.fixture(scope="module", params=WHOLE)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of each program; the last one deadlocks."""
    return record(program(request.param), tmp_path_factory.mktemp("run"))[1]


@pytest.mark.parametrize(
    ("said", "number", "told"),
    [
        ('{"errno":"28"}', 28, "No space left on device"),
        ("cannot write\nat all", None, "cannot write"),
    ],
)
def test_what_the_system_says(said: str, number: int | None, told: str) -> None:
    """An error of the database is the system's, by its number, or else its own first line."""
    with pytest.raises(OSError, match=told) as caught, system_errors():
        raise duckdb.IOException(said)
    assert (number, told) == (caught.value.errno, caught.value.strerror or str(caught.value))


class TestPerfetto:
    def test_tracks(self, trace: Trace, tmp_path: Path) -> None:
        """A track a unit below the units, a counter a channel and one for the HBM."""
        tracks = {each.uuid: each for each in _tracks(_perfetto(trace, tmp_path))}
        parents: dict[str, list[str]] = defaultdict(list)
        for each in tracks.values():
            parent = tracks[each.parent_uuid].name if each.parent_uuid else ""
            parents[parent].append(each.name)

        name = trace.meta["name"]
        root = f"fabric: {name}; 1 ns is 1 cycle"
        assert [root] == parents[""]
        assert {"units", "channels: elements held"} < set(parents[root])
        assert len(trace.unit_names()) == len(parents["units"])
        used = trace.rows("SELECT DISTINCT c.name FROM transfers JOIN channels c USING (channel)")
        assert {channel for (channel,) in used} == set(parents["channels: elements held"])

    def test_slices(self, trace: Trace, tmp_path: Path) -> None:
        """Slices of a unit begin and end in turn, never overlap, and sum to its busy cycles."""
        message = _perfetto(trace, tmp_path)
        names = {each.uuid: each.name.split(" (")[0] for each in _tracks(message)}
        busy: dict[str, int] = dict.fromkeys(trace.unit_names(), 0)
        events: dict[int, list[Any]] = defaultdict(list)
        for packet in message.packet:
            if packet.track_event.type in (
                TrackEvent.TYPE_SLICE_BEGIN,
                TrackEvent.TYPE_SLICE_END,
            ):
                events[packet.track_event.track_uuid].append(packet)

        for track, found in events.items():
            begins, ends = found[::2], found[1::2]
            for begin, end in zip(begins, ends, strict=True):
                assert TrackEvent.TYPE_SLICE_BEGIN == begin.track_event.type
                assert TrackEvent.TYPE_SLICE_END == end.track_event.type
                assert begin.timestamp < end.timestamp
                if begin.track_event.name == "busy":
                    busy[names[track]] += end.timestamp - begin.timestamp
            assert all(
                end.timestamp <= begin.timestamp
                for end, begin in zip(ends, begins[1:], strict=False)
            )
        assert busy == dict(
            trace.rows("SELECT name, busy_cycles FROM states JOIN units USING (unit)")
        )

    def test_far_ends(self, trace: Trace, tmp_path: Path) -> None:
        """A wait for an element names who sends it, a wait for a slot who takes from there."""
        message = _perfetto(trace, tmp_path)
        names = {each.uuid: each.name.split(" (")[0] for each in _tracks(message)}
        found = {
            (names[packet.track_event.track_uuid], packet.track_event.name)
            for packet in message.packet
            if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN
            and packet.track_event.name.startswith(("empty", "full"))
        }
        ends = {
            (unit, far_end)
            for producer, consumer in trace.rows(
                "SELECT p.name, c.name FROM channels "
                "JOIN units p ON p.unit = producer JOIN units c ON c.unit = consumer"
            )
            for unit, far_end in (
                (consumer, f"empty from {producer}"),
                (producer, f"full to {consumer}"),
            )
        }
        first = trace.rows("SELECT name FROM channels WHERE channel = 0")[0][0]
        producer, _, consumer = first.partition(" -> ")

        assert found
        assert found <= ends
        assert any(
            producer.startswith(f"{name.split()[-1]}.") and consumer.startswith(f"{unit}.")
            for unit, name in found
        )

    def test_arrows(self, trace: Trace, tmp_path: Path) -> None:
        """An arrow leads from each wait to the unit at the other end, when that ended it."""
        message = _perfetto(trace, tmp_path)
        names = {each.uuid: each.name.split(" (")[0] for each in _tracks(message)}
        begins: dict[int, tuple[str, int]] = {}
        ends: dict[int, tuple[str, int]] = {}
        for packet in message.packet:
            event = packet.track_event
            place = names.get(event.track_uuid, ""), packet.timestamp
            for arrow in event.flow_ids:
                assert TrackEvent.TYPE_SLICE_BEGIN == event.type
                assert begins.setdefault(arrow, place) == place
            for arrow in event.terminating_flow_ids:
                assert TrackEvent.TYPE_INSTANT == event.type
                assert ends.setdefault(arrow, place) == place
        expected = trace.rows(
            "SELECT u.name, start_cycle, p.name, until_cycle FROM waits w "
            "JOIN units u USING (unit) JOIN channels c USING (channel) "
            "JOIN units p ON p.unit = CASE WHEN consumer = w.unit THEN producer ELSE consumer END "
            "WHERE NOT open"
        )

        assert begins.keys() == ends.keys()
        assert sorted(expected) == sorted((*begins[each], *ends[each]) for each in begins)
        assert all(begins[each][1] <= ends[each][1] for each in begins)

    def test_opened(self, trace: Trace, tmp_path: Path) -> None:
        """Every slice ends, every arrow arrives, by the schema; Perfetto, where it is, agrees."""
        message = _perfetto(trace, tmp_path)
        events = [packet.track_event for packet in message.packet]
        kinds = Counter(event.type for event in events)
        arrows = [arrow for event in events for arrow in event.flow_ids]

        assert kinds[TrackEvent.TYPE_SLICE_BEGIN] == kinds[TrackEvent.TYPE_SLICE_END] > 0
        assert sorted(arrows) == sorted(
            arrow for event in events for arrow in event.terminating_flow_ids
        )
        shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
        if shell is not None:
            config = TraceProcessorConfig(bin_path=shell)
            with TraceProcessor(trace=str(tmp_path / "run.perfetto"), config=config) as found:

                def count(query: str) -> int:
                    (row,) = found.query(f"SELECT count(*) AS found FROM {query}")
                    return int(row.found)

                assert count("slice WHERE dur > 0") == kinds[TrackEvent.TYPE_SLICE_BEGIN]
                assert count("flow") == len(arrows)
                assert count("counter") == kinds[TrackEvent.TYPE_COUNTER]
                assert not count("stats WHERE severity = 'error' AND value > 0")

    def test_counters(self, trace: Trace, tmp_path: Path) -> None:
        """No channel holds more than its depth; the HBM's bytes sum to what was moved."""
        message = _perfetto(trace, tmp_path)
        names = {each.uuid: each.name for each in _tracks(message)}
        depths = dict(trace.rows("SELECT name, depth FROM channels"))
        moved = 0
        for packet in message.packet:
            event = packet.track_event
            if event.type == TrackEvent.TYPE_COUNTER and names[event.track_uuid] in depths:
                assert 0 <= event.counter_value <= depths[names[event.track_uuid]]
            elif event.type == TrackEvent.TYPE_COUNTER:
                moved += event.counter_value

        ((expected,),) = trace.rows("SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts")
        assert expected == moved


class TestVcd:
    def test_states(self, trace: Trace, tmp_path: Path) -> None:
        """An independent parser finds each unit's states at the cycles they changed."""
        dump = _vcd(trace, tmp_path)
        lines = timelines(trace)
        for unit, name in enumerate(lines.names):
            values = dump[f"fabric.units.{name}"].tv
            for piece in slices(lines, unit):
                _, state = max(change for change in values if change[0] <= piece.start)
                assert piece.state == STATES[int(state, 2)]

    def test_levels(self, trace: Trace, tmp_path: Path) -> None:
        """Channels hold what was sent and not dequeued."""
        dump = _vcd(trace, tmp_path)
        assert "1 ns" == f"{dump.timescale['magnitude']} {dump.timescale['unit']}"
        for channel, reader in trace.rows("SELECT channel, reader FROM channels"):
            for time, value in dump[f"fabric.held.{reader.replace('.', '_')}"].tv:
                ((held,),) = trace.rows(
                    f"SELECT count(*) FROM transfers WHERE channel = {channel} AND "
                    f"sent_cycle <= {time} AND coalesce(taken_cycle > {time}, true)"
                )
                assert held == int(value, 2)

    def test_times_ascend(self, trace: Trace, tmp_path: Path) -> None:
        """Each cycle stands in the file once, in order, up to the end of the run."""
        export_trace(trace, "vcd", tmp_path / "run.vcd")
        text = (tmp_path / "run.vcd").read_text(encoding="ascii")
        times = [int(line[1:]) for line in text.splitlines() if line[0] == "#"]

        assert all(before < after for before, after in pairs(times))
        assert trace.cycles == times[-1]


class TestText:
    def test_json_lines(self, trace: Trace, tmp_path: Path) -> None:
        """Lines are what a user's own processors are told, in the order of cycles."""
        count = export_trace(trace, "jsonl", tmp_path / "run.jsonl")
        text = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
        events = [json.loads(line) for line in text.splitlines()]
        capture = LogCapture()

        assert count == len(events) == trace.tell([capture])
        assert events == captured(capture)
        assert sorted(event["cycle"] for event in events) == [event["cycle"] for event in events]
        for event in events:
            assert {"event", "level", "run", *EVENTS[event["event"]]} == set(event)

    def test_csv(self, trace: Trace, tmp_path: Path) -> None:
        """The table has a row for each element."""
        count = export_trace(trace, "csv", tmp_path / "run.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "run.csv").read_text("utf-8"))))

        assert count == len(rows)
        assert [
            (name, str(element), str(sent))
            for name, element, sent in trace.rows(
                "SELECT name, element, sent_cycle FROM transfers JOIN channels USING (channel) "
                "ORDER BY taken_cycle NULLS LAST, channel, element"
            )
        ] == [(row["channel"], row["element"], row["sent_cycle"]) for row in rows]


def _perfetto(trace: Trace, folder: Path) -> Any:
    export_trace(trace, "perfetto", folder / "run.perfetto")
    message: Any = TraceMessage()
    message.ParseFromString((folder / "run.perfetto").read_bytes())
    return message


def _tracks(message: Any) -> list[Any]:
    return [
        packet.track_descriptor for packet in message.packet if packet.HasField("track_descriptor")
    ]


def _vcd(trace: Trace, folder: Path) -> Any:
    export_trace(trace, "vcd", folder / "run.vcd")
    return VCDVCD(str(folder / "run.vcd"))

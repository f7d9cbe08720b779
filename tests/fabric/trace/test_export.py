from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from structlog.testing import LogCapture

from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.messages.vocabulary import EVENTS
from tests.fabric.trace.recording import program, record
from tests.outcomes import captured

WHOLE = ["swiglu", "pack_rows"]


@pytest.fixture(scope="module", params=WHOLE)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(program(request.param), tmp_path_factory.mktemp("run"))[1]


def test_perfetto_arrows_link_waits_and_their_ends(trace: Trace, tmp_path: Path) -> None:
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


def test_json_lines_are_the_events_of_a_processor(trace: Trace, tmp_path: Path) -> None:
    count = export_trace(trace, "jsonl", tmp_path / "run.jsonl")
    text = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    capture = LogCapture()

    assert count == len(events) == trace.tell([capture])
    assert events == captured(capture)
    assert sorted(event["cycle"] for event in events) == [event["cycle"] for event in events]
    for event in events:
        assert {"event", "level", "run", *EVENTS[event["event"]]} == set(event)


def _perfetto(trace: Trace, folder: Path) -> Any:
    export_trace(trace, "perfetto", folder / "run.perfetto")
    message: Any = TraceMessage()
    message.ParseFromString((folder / "run.perfetto").read_bytes())
    return message


def _tracks(message: Any) -> list[Any]:
    return [
        packet.track_descriptor for packet in message.packet if packet.HasField("track_descriptor")
    ]

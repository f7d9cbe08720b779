"""The trace as Perfetto's protobuf: a track for each unit, counters for channels and the HBM.

Counters show the uses of the HBM's buses, if counted. Arrows link each wait to the event that ended
it. 1 cycle is written as 1 ns, and the root track states this.
"""

from __future__ import annotations

from pathlib import Path

# Any: protobuf's classes have no types.
from typing import Any, BinaryIO, Final

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

from fabric.analysis.trace.analysis.timeline import (
    Level,
    Timelines,
    bandwidth,
    occupancy,
    slices,
    timelines,
)
from fabric.analysis.trace.reading.names import Names
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.causes import BusUse, Cause
from fabric.messages.files import output_file
from fabric.messages.text import counted
from fabric.timing.engine.off_chip import MemoryCounters

_SEQUENCE: Final = 1

_PACKETS: Final = 10_000

_ROOT, _UNITS, _CHANNELS, _HBM, _BUSES = 1, 2, 3, 4, 5

_FIRST_UNIT: Final = 16

_BINS: Final = 1_000


class _Writer:
    """Writes packets into a file, which may be cut between any two packets."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._message: Any = TraceMessage()
        self._arrows = 0
        self.events = 0

    def packet(self) -> Any:
        if len(self._message.packet) >= _PACKETS:
            self.flush()
        packet = self._message.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def flush(self) -> None:
        self._file.write(self._message.SerializeToString(deterministic=True))
        self._message = TraceMessage()

    def track(self, uuid: int, name: str, parent: int = 0, unit: str | None = None) -> None:
        track = self.packet().track_descriptor
        track.uuid = uuid
        track.name = name
        if parent:
            track.parent_uuid = parent
        if unit is not None:
            track.counter.unit_name = unit

    def event(self, cycle: int, track: int, kind: int) -> Any:
        packet = self.packet()
        packet.timestamp = cycle
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        self.events += 1
        return packet.track_event

    def slice(self, track: int, start: int, end: int, name: str) -> Any:
        """Write the begin and the end; return the begin, or None for an empty slice."""
        if start >= end:
            return None
        begin = self.event(start, track, TrackEvent.TYPE_SLICE_BEGIN)
        begin.name = name
        self.event(end, track, TrackEvent.TYPE_SLICE_END)
        return begin

    def arrow(self, begin: Any, track: int, cycle: int, name: str) -> None:
        """Write an event, and an arrow to it from the slice that begins with ``begin``."""
        self._arrows += 1
        begin.flow_ids.append(self._arrows)
        instant = self.event(cycle, track, TrackEvent.TYPE_INSTANT)
        instant.name = name
        instant.terminating_flow_ids.append(self._arrows)

    def levels(self, track: int, levels: list[Level]) -> None:
        for level in levels:
            self.event(level.cycle, track, TrackEvent.TYPE_COUNTER).counter_value = level.value


def write_perfetto(trace: RecordedRun, output: Path) -> int:
    """Write ``output`` for ui.perfetto.dev; return the number of its events."""
    names, lines = Names(trace), timelines(trace)
    with output_file(output, "wb") as file:
        writer = _Writer(file)
        first: Any = writer.packet()
        first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        writer.track(_ROOT, f"fabric: {trace.head.name}; 1 ns is 1 cycle")
        writer.slice(
            _ROOT, lines.first, lines.last, f"{trace.status}, {counted(trace.cycles, 'cycle')}"
        )
        writer.track(_UNITS, "units", _ROOT)
        writer.track(_CHANNELS, "channels: elements held", _ROOT)
        for unit, name in enumerate(names.units):
            track = _FIRST_UNIT + unit
            writer.track(track, f"{name} ({names.places[unit]})", _UNITS)
            for piece in slices(lines, unit):
                title = piece.state.label
                if piece.channel >= 0:
                    title += f" {names.far_end(unit, piece.channel)}"
                begin = writer.slice(track, piece.start, piece.end, title)
                if begin is not None and piece.until >= piece.start:
                    peer = _FIRST_UNIT + names.peer(unit, piece.channel)
                    writer.arrow(begin, peer, piece.until, f"ends a wait of {name}")
                if piece.open:
                    instant = writer.event(piece.end, track, TrackEvent.TYPE_INSTANT)
                    instant.name = f"{title}, since {piece.start:,}, when the run stopped"
        for channel, levels in occupancy(trace):
            track = _FIRST_UNIT + len(names.units) + channel
            writer.track(track, names.channels[channel], _CHANNELS, "elements")
            writer.levels(track, levels)
        width = max(1, (lines.last - lines.first) // _BINS)
        writer.track(_HBM, f"{Cause.HBM.label}: bytes in {counted(width, 'cycle')}", _ROOT, "bytes")
        writer.levels(_HBM, [*bandwidth(trace, width), Level(lines.last, 0)])
        if trace.hbm is not None:
            _buses(writer, trace.hbm, lines)
        writer.flush()
    return writer.events


def _buses(writer: _Writer, counters: MemoryCounters, lines: Timelines) -> None:
    width = counters.period_cycles
    starts = [
        (max(number * width, lines.first), period)
        for number, period in enumerate(counters.periods)
        if number * width < lines.last and (number + 1) * width > lines.first
    ]
    title = f"{Cause.HBM.label}: cycles of its data buses in {counted(width, 'cycle')}"
    writer.track(_BUSES, title, _ROOT)
    for number, use in enumerate(BusUse):
        if getattr(counters.bus, use):
            writer.track(_BUSES + 1 + number, use.label, _BUSES, "cycles")
            levels = [Level(start, getattr(period, use)) for start, period in starts]
            writer.levels(_BUSES + 1 + number, [*levels, Level(lines.last, 0)])

"""What a checked operator has while it runs, one that is not conducted: a look at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel, Discard
from fabric.engine.checked_operator import Calls, CheckedSink, CheckedUnit, LaterSink, check_reads
from fabric.engine.ports import Ports
from fabric.telling.errors import Refusal
from fabric.telling.wording import counted
from fabric.values.fit import MOST_CYCLES, whole

__all__ = ["CheckedPorts", "checked_ports"]


@dataclass(frozen=True)
class CheckedPorts(Ports):
    """Ports that look at what their operator does.

    Attributes:
        calls: what the operator has asked its channels for.
    """

    calls: Calls = field(kw_only=True)

    @override
    async def burst(self, rows: int, row_bytes: int, number: int = 0) -> None:
        self.calls.check_task()
        region = self.region
        if region is None:
            raise Refusal(
                "a burst is asked for: expected an operator whose off_chip is 'read' or 'write'"
            )
        rows = whole(rows, "rows are moved")
        row_bytes = whole(row_bytes, "bytes of a row are moved")
        number = whole(number, "is the number of what is moved")
        burst = region.burst(rows, row_bytes, number)
        begin = burst.address - region.first_address
        end = begin + (rows - 1) * burst.pitch_bytes + row_bytes
        if rows and row_bytes and end > region.size_bytes:
            raise Refusal(
                f"bytes {begin:,} to {end - 1:,} of its tensor are moved: "
                f"expected a burst inside of its {counted(region.size_bytes, 'byte')}"
            )
        await super().burst(rows, row_bytes, number)

    @override
    def finish(self) -> None:
        self.calls.end()
        for sink in self.outputs:
            assert isinstance(sink, CheckedSink)
            sink.finish()
        if self.observation is not None:
            self.observation.finished(self.unit)


def checked_ports(ports: Ports, names: Sequence[str]) -> CheckedPorts:
    """Return ``ports`` with a look at what their operator does.

    Args:
        ports: of a conducted operator in its place.
        names: of what it writes, in port order.
    """
    unit = ports.unit
    assert isinstance(unit, CheckedUnit)
    unit.calls = calls = Calls(unit)
    unit.shown, unit.steps_left = set(), [0, -1, 0]
    # As many as it likes, where nobody watches for livelocks.
    unit.most_steps = MOST_CYCLES
    unit.reads = ports.inputs
    bare = [sink for sink in ports.outputs if not isinstance(sink, CheckedSink | LaterSink)]
    unit.writes = [_channel(sink) for sink in bare if not isinstance(sink, Discard)]
    for source in ports.inputs:
        check_reads(source)
    outputs = tuple(
        CheckedSink(sink, name, each, calls, functional=ports.functional)
        for sink, name, each in zip(bare, names, ports.output_types, strict=True)
    )
    fields = {name: getattr(ports, name) for name in Ports.__dataclass_fields__}
    return CheckedPorts(**(fields | {"outputs": outputs}), calls=calls)


def _channel(sink: Channel | AssumedSink) -> Channel:
    return sink if isinstance(sink, Channel) else sink.channel

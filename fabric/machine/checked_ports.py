"""What a checked operator has while it runs, one that is not conducted: a look at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from typing_extensions import override

from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.calls import Calls
from fabric.engine.channel import Channel
from fabric.engine.checked_sink import CheckedSink
from fabric.engine.checked_source import check_reads
from fabric.engine.checked_unit import CheckedUnit
from fabric.engine.discard import Discard
from fabric.engine.ports import Ports
from fabric.telling.errors import Refusal
from fabric.values.fit import MOST_CYCLES, whole
from fabric.wiring.operator import Node

__all__ = ["CheckedPorts", "checked_ports"]


@dataclass(frozen=True)
class CheckedPorts(Ports):
    """Ports that look at what their operator does.

    Attributes:
        calls: what the operator has asked its channels for.
        side: on which it is served by the HBM, if it is.
    """

    calls: Calls = field(kw_only=True)
    side: Literal["read", "write"] | None = None

    @override
    async def burst(self, rows: int, row_bytes: int) -> None:
        self.calls.check_task()
        if self.side is None:
            raise Refusal(
                "a burst is asked for: expected an operator whose off_chip is 'read' or 'write'"
            )
        await super().burst(
            whole(rows, "rows are moved"), whole(row_bytes, "bytes of a row are moved")
        )

    @override
    def finish(self) -> None:
        self.calls.end()
        for sink in self.outputs:
            assert isinstance(sink, CheckedSink)
            sink.finish()


def checked_ports(ports: Ports, names: Sequence[str], node: Node) -> CheckedPorts:
    """Return ``ports`` with a look at what their operator does.

    Args:
        ports: of a conducted operator in its place.
        names: of what it writes, in port order.
        node: where the operator is in the program.
    """
    unit = ports.unit
    assert isinstance(unit, CheckedUnit)
    unit.calls = calls = Calls(unit)
    unit.shown, unit.steps_left = set(), [0, -1, 0]
    # As many as it likes, where nobody watches for livelocks.
    unit.most_steps = MOST_CYCLES
    unit.reads = ports.inputs
    bare = [sink for sink in ports.outputs if not isinstance(sink, CheckedSink)]
    unit.writes = [_channel(sink) for sink in bare if not isinstance(sink, Discard)]
    for source in ports.inputs:
        check_reads(source)
    outputs = tuple(
        CheckedSink(sink, name, each, calls, functional=ports.functional)
        for sink, name, each in zip(bare, names, ports.output_types, strict=True)
    )
    fields = {name: getattr(ports, name) for name in Ports.__dataclass_fields__}
    return CheckedPorts(**(fields | {"outputs": outputs}), calls=calls, side=node.operator.off_chip)


def _channel(sink: Channel | AssumedSink) -> Channel:
    return sink if isinstance(sink, Channel) else sink.channel

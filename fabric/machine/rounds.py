"""Several inputs back to back: an operator without inputs of its own runs once for each of them.

In front of the stream of such an operator stands a dimension of 1: several inputs are that
dimension, of their number. What comes behind takes it as it comes: where a program flattens it away
and cuts what is left into tiles, those have elements of several inputs, and wait for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.engine.later_sink import LaterSink

if TYPE_CHECKING:
    from fabric.engine.ports import Ports

__all__ = ["rounds"]


def rounds(ports: Ports) -> Iterator[Ports]:
    """Yield what an operator without inputs sees in each run of it.

    Cycles that it asks for with ``send_at`` go on where those of the run before ended: what it
    wants visible in cycles 0 to 9 is to be so in cycles 10 to 19 the second time.
    """
    if ports.repeats == 1:
        yield ports
        return
    since_cycle = 0
    for _ in range(ports.repeats):
        sinks = tuple(
            LaterSink(sink, since_cycle)
            for sink in ports.outputs
            if not isinstance(sink, LaterSink)
        )
        yield replace(ports, outputs=sinks, since_cycle=since_cycle)
        since_cycle = max((sink.next_cycle for sink in sinks), default=0)

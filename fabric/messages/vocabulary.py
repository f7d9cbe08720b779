"""The fields of a trace, with one unit and one meaning each, and the levels of events.

Every event also has a ``level``, and ``run``, the name of the program. The events of a run's log
and their fields are in docs/pages/reference/log-events.md.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fabric.messages.causes import PARKED, WAITS, Cause, Step
from fabric.messages.text import listed

SCHEMA_VERSION: Final = 6
"""The version of trace folders; a reader refuses others."""


class Field(NamedTuple):
    """The unit (empty for texts) and the meaning of a field."""

    unit: str
    meaning: str


FIELDS: Final[dict[str, Field]] = {
    "any_of": Field("", "whether one of the channels that a unit waits for is enough"),
    "backward_cycles": Field("cycles", "from a dequeue until its credit is usable"),
    "awaited_stop": Field("", "lowest stop that closes the sub-tensor in which a stream ended"),
    "bare": Field("", "whether the element is a bare stop, which carries no value"),
    "busy_cycles": Field("cycles", Cause.BUSY.meaning),
    "bytes": Field("bytes", "moved by a burst, in whole requests, or allocated on chip"),
    "carries": Field("", "what a channel carries: tile, selector, buffer, bool or tuple"),
    "cause": Field("", f"cause of the wait: {listed(WAITS)}"),
    "channel": Field("", "a channel, by its number in edge order; by its name in JSON lines"),
    "consumer": Field("", "the unit that reads a channel"),
    "closed_cycle": Field("cycles", "the producer ended the stream; null while it is open"),
    "cycle": Field("cycles", "the unit's clock at the event; null in livelocks and some errors"),
    "cycles": Field("cycles", "duration"),
    "depth": Field("elements", "slots of a channel"),
    "element": Field("", "number of the element in its channel, bare stops included, from 0"),
    "elements": Field("elements", "values dequeued; bare stops are not counted"),
    "end_cycle": Field("cycles", "the first cycle after the end; the run's cycles if it is open"),
    "expected": Field("elements", "length of the whole stream by its shape; null if data decide"),
    "family": Field("", "units of one operator and place, or channels between two families"),
    "feedback": Field("", "file:line that declares the Feedback of a loop's channel"),
    "file": Field("", "the user's file in which the operator was wired"),
    "finished": Field("", "whether the unit's operator has ended"),
    "flops": Field("FLOPs", "floating-point operations done"),
    "flops_per_cycle": Field("FLOPs/cycle", "compute bandwidth; 0 for a unit without arithmetic"),
    "forward_cycles": Field("cycles", "from the sending of an element until it is visible"),
    "held": Field("elements", "sent and not dequeued, bare stops included"),
    "held_bytes": Field("bytes", "allocated on chip by the unit and not released"),
    "in_all": Field("elements", "length of a whole stream in a loop: a number or an expression"),
    "kind": Field("", "kind of the unit: compute, memory or routing"),
    "line": Field("", "the line in the user's file"),
    "name": Field("", "name, unique in the program"),
    "operation": Field("", listed(tuple(Step))),
    "operator": Field("", "class of an operator; in operator_finished the unit's name"),
    "open": Field("", "whether the run stopped before the wait or burst ended"),
    "order": Field("", "place in the unit's own sequence of operations, from 0"),
    "peak_bytes_per_cycle": Field("bytes/cycle", "limit of the HBM"),
    "per_output": Field("elements", "elements that a reader in a loop takes per output, if over 1"),
    "producer": Field("", "the unit that writes a channel"),
    "reader": Field("", "a channel as --depth names it: consumer.input"),
    "receive_wait_cycles": Field("cycles", "the consumer waited for the element"),
    "requests": Field("requests", "HBM requests of a burst; only served ones if it is unfinished"),
    "reserved_cycle": Field("cycles", "the producer had its credit; its clock after the wait"),
    "seen_cycle": Field("cycles", "the consumer first saw the element; its clock after the wait"),
    "seen_stop": Field("", "level of the last stop of a stream that ended inside a sub-tensor"),
    "send_wait_cycles": Field("cycles", "the producer waited for a slot and for its credit"),
    "sent_cycle": Field("cycles", "the producer put the element into the channel"),
    "shape": Field("", "shape of a stream in a loop, outermost dimension first"),
    "since_cycle": Field("cycles", "the start of an open wait; of a loop, the latest start"),
    "start_cycle": Field("cycles", "the first cycle of the wait"),
    "status": Field("", "completed, deadlock, livelock, error, interrupted or killed"),
    "stop": Field("", "level of the stop of the element, 0 for none"),
    "submitted_cycle": Field("cycles", "the unit handed its burst to the HBM"),
    "taken_cycle": Field("cycles", "the consumer dequeued the element; null while it is held"),
    "unit": Field("", "a unit, by its number in node order; by its name in JSON lines"),
    "links_cycles": Field("cycles", "part of the wait in which shared links delayed an element"),
    "until_cycle": Field("cycles", "the peer or the memory acted; end_cycle of an open wait"),
    "visible_cycle": Field("cycles", "the first cycle in which the consumer can see the element"),
    "wanted_bytes": Field("bytes", "on-chip memory that the unit waits for"),
    "wait_cycles": Field("cycles", "waited at this operation"),
    "waits_for": Field("", f"{listed(PARKED)}; in a livelock also moving or circling"),
    "work_cycles": Field("cycles", "worked since its previous operation, before any wait"),
}

EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "transfer": (
        "cycle", "channel", "element", "stop", "bare", "reserved_cycle", "sent_cycle",
        "visible_cycle", "seen_cycle", "send_wait_cycles", "receive_wait_cycles",
    ),
    "burst": ("cycle", "unit", "submitted_cycle", "requests", "bytes"),
    "allocate": ("cycle", "unit", "wait_cycles", "bytes"),
    "end": ("cycle", "unit", "channel", "wait_cycles"),
    "reserve": ("cycle", "unit", "channel", "wait_cycles"),
    "idle": ("cycle", "unit", "channel", "wait_cycles"),
    "held": (
        "cycle", "channel", "element", "stop", "bare", "reserved_cycle", "visible_cycle",
        "seen_cycle", "send_wait_cycles", "receive_wait_cycles",
    ),
    "open_wait": ("cycle", "unit", "cause", "channel", "start_cycle", "wait_cycles", "bytes"),
}  # fmt: skip
"""The events of a trace and their fields.

``cycle`` of a transfer is its dequeue, and of a burst its completion. A ``held`` element was sent
in ``cycle`` and never dequeued. A ``reserve`` is a reserved slot without an element. An ``idle`` is
a wait for an element that is looked at later. An ``open_wait`` lasts to the run's last cycle; its
``bytes`` are those that its burst had moved."""

_LEVELS: Final = {
    "info": ("run_started", "heartbeat", "run_again", "run_ended"),
    "warning": ("long_stall", "blocked_behind", "left_over", "warning"),
    "error": (
        "partial_deadlock", "stopped", "stuck_loop", "blocked", "deadlock", "livelock",
        "wrong_output", "failure",
    ),
}  # fmt: skip

LEVELS: Final = {event: level for level, events in _LEVELS.items() for event in events}
"""The levels of the run log's events; ends of operators and events of a trace have ``debug``.

A ``long_stall`` is an open wait of a million cycles. ``heartbeat``, ``long_stall`` and
``partial_deadlock`` are logged about every million cycles; the engine and the schedule decide how
far each unit has then run. All other events depend on the program alone."""

TABLES: Final[dict[str, tuple[str, ...]]] = {
    "units": ("unit", "name", "operator", "kind", "file", "line", "flops_per_cycle", "family"),
    "channels": (
        "channel", "name", "reader", "depth", "forward_cycles", "backward_cycles", "producer",
        "consumer", "expected", "carries", "family",
    ),
    "transfers": (
        "channel", "element", "stop", "bare", "reserved_cycle", "sent_cycle", "visible_cycle",
        "seen_cycle", "taken_cycle", "send_wait_cycles", "receive_wait_cycles",
    ),
    "bursts": ("unit", "submitted_cycle", "end_cycle", "cycles", "requests", "bytes", "open"),
    "operations": (
        "unit", "order", "operation", "cycle", "work_cycles", "wait_cycles", "channel", "element",
    ),
    "waits": (
        "unit", "start_cycle", "end_cycle", "cycles", "cause", "channel", "until_cycle",
        "links_cycles", "open",
    ),
    "run": ("status", "cycles", "peak_bytes_per_cycle"),
    "states": (
        "unit", "cycle", "busy_cycles", "flops", "finished", "waits_for", "any_of",
        "wanted_bytes", "held_bytes", "since_cycle",
    ),
    "waiting": (
        "unit", "channel", "elements", "held", "closed_cycle", "in_all", "shape", "per_output",
        "feedback", "seen_stop", "awaited_stop",
    ),
}  # fmt: skip
"""The tables of ``trace query``.

A row of ``operations`` is a step of a unit. A row of ``waits`` is a wait that is open or longer
than 0 cycles. ``states`` has each unit at the end of the recording, and ``waiting`` each channel
that a unit waits for at that time. ``run`` has one row. The columns of ``waiting`` from ``in_all``
to ``feedback`` are null outside of loops."""

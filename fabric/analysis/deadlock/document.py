"""The report of a deadlock as data: ``deadlock.json``, ``Deadlock.report``, ``run --json``.

``DeadlockReport`` is the whole object; every field is JSON, counts are in elements (bare stops are
not counted unless said), times in cycles. Lists are in node or channel order, a loop in the order
of its waits, so that two runs give the same bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.sheet import ShownAsTables

SCHEMA: Final = 1

KINDS: Final = {
    "FAB-D001": "capacity deadlock",
    "FAB-D002": "dependency deadlock",
    "FAB-D003": "stream ended short",
    "FAB-D005": "slots or buffers lost",
    "FAB-D006": "hold-and-wait on chip",
    "FAB-L001": "livelock (a heuristic)",
}
"""What each code means; FAB-D004, elements left over, is a warning of a run that completed."""


@dataclass(frozen=True)
class BlockedUnit:
    """A unit that does not go on.

    Attributes:
        unit, operator: its name and the class of its operator.
        operation: ``receive``, ``send``, ``capacity``; ``moving`` in a livelock, or
            ``circling`` where a unit is one by itself.
        any_of: one of the channels is enough.
        channels: names of those it waits for.
        waits_for: units that could let it go on.
        since_cycle: its clock when it began to wait; None in a livelock.
        file, line: where it was wired.
        needs: what would let it go on, in words.
        seen_stop, awaited_stop: level of the last stop of a stream that ended in the middle of a
            sub-tensor, and the lowest that would have closed it; None elsewhere.
    """

    unit: str
    operator: str
    operation: str
    any_of: bool
    channels: list[str]
    waits_for: list[str]
    since_cycle: int | None
    file: str
    line: int
    needs: str
    seen_stop: int | None
    awaited_stop: int | None


@dataclass(frozen=True)
class LoopChannel:
    """A channel of a loop.

    Attributes:
        name: ``producer.output -> consumer.input``.
        option: what ``--depth`` calls it.
        depth, held: slots, and how many of them hold an element or a bare stop.
        sent, taken: elements.
        expected: how many elements it should carry in all: a number, or an expression.
        shape: of the stream.
        ended_cycle: the producer's final clock, where it has ended.
    """

    name: str
    option: str
    depth: int
    held: int
    sent: int
    taken: int
    expected: str
    shape: str
    ended_cycle: int | None


@dataclass(frozen=True)
class Loop:
    """Units that wait for one another, or one that waits for something that has ended.

    Attributes:
        code: of ``KINDS``.
        units: each waits for the next, the last for the first.
        channels: that they wait for, in the same order.
        cause: in sentences.
        hint: where something is missing, for loops that no depth releases.
    """

    code: str
    units: list[BlockedUnit]
    channels: list[LoopChannel]
    cause: str
    hint: str


@dataclass(frozen=True)
class Depth:
    """A channel made deeper.

    Attributes:
        option: what ``--depth`` calls it.
        before, after: slots.
        rejected_cycle: where the program stops with one slot less, the other depths kept; None
            where that was not tried.
        same_loop: it stops in the same loop then.
    """

    option: str
    before: int
    after: int
    rejected_cycle: int | None
    same_loop: bool


@dataclass(frozen=True)
class Capacity:
    """The on-chip memory made larger.

    Attributes:
        before_bytes, after_bytes: ``capacity_bytes`` in the section ``[on_chip]`` of the hardware.
        rejected_cycle: where the program stops with one byte less; None where that was not tried.
        same_loop: it stops in the same loop then.
    """

    before_bytes: int
    after_bytes: int
    rejected_cycle: int | None
    same_loop: bool


@dataclass(frozen=True)
class Front:
    """Elements put in front of a feedback, so that its loop has something to begin with.

    Attributes:
        stream, type: what is connected, and what it carries.
        write: what to give ``connect`` instead; any value does for the run that was tried.
        file, line: of the ``connect``.
        count: of elements, or of sub-tensors.
        rejected_cycle: where the program stops with one less, all else kept; None where that was
            not tried.
        same_loop: it stops in the same loop then.
        statement: the user's line with that in it; empty where it is not a plain one.
    """

    stream: str
    type: str
    write: str
    file: str
    line: int
    count: int
    rejected_cycle: int | None
    same_loop: bool
    statement: str = ""


@dataclass(frozen=True)
class EveryChannel:
    """One depth for all channels that are given none of their own.

    Attributes:
        before, after: slots.
        cycles: of a run from cycle 0 with it.
        write: what to type or to write for it.
    """

    before: int
    after: int
    cycles: int
    write: str


NOT_SOUGHT: Final = "no remedy was looked for"
NOT_ENDED: Final = "the search for a remedy has not ended"
INTERRUPTED: Final = "the search for a remedy was interrupted"
"""Why nobody knows whether there is a remedy."""


@dataclass(frozen=True)
class Remedy:
    """Changes with which the program completes, all of them together.

    Attributes:
        depths: none where no depth helps, or none was found.
        capacity: of the on-chip memory, where more of it is needed; else None.
        cycles: of a run from cycle 0 with these changes; None where none completed.
        irreducible: none of the depths or fronts can be lowered by one with all else kept, nor the
            capacity by a byte.
        trials: runs it took.
        why_not: the reason, where there is none, or why they may be larger than needed.
        initial: elements in front of feedbacks, where loops have none to begin with.
        every_channel: another remedy, which is simpler to type, where the search gave up.
    """

    depths: list[Depth]
    capacity: Capacity | None
    cycles: int | None
    irreducible: bool
    trials: int
    why_not: str
    initial: list[Front] = field(default_factory=list)
    every_channel: EveryChannel | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened on a channel of a loop, of which the channel still has the stamp.

    Attributes:
        cycle: when.
        unit: whose operation it was.
        what: in words.
    """

    cycle: int
    unit: str
    what: str


@dataclass(frozen=True, repr=False)
class DeadlockReport(ShownAsTables):
    """Why a program does not move.

    Attributes:
        schema: of this object.
        program: its name.
        code, kind: of the first loop.
        cycle: when the last of the units that wait came to rest.
        loops: the cores.
        behind: units that wait behind them.
        finished: how many units had ended.
        remedy: what was tried.
        last_events: of the channels of the loops, latest last.
        summary: in one line.
    """

    schema: int
    program: str
    code: str
    kind: str
    cycle: int
    loops: list[Loop]
    behind: list[BlockedUnit]
    finished: int
    remedy: Remedy
    last_events: list[Event]
    summary: str

    def as_json(self) -> JsonObject:
        """Return the object as plain data."""
        return asdict(self)

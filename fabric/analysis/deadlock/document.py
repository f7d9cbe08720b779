"""The report of a deadlock as data: ``deadlock.json``, ``Deadlock.report``, ``run --json``.

``DeadlockReport`` is the whole object; every field is JSON. Counts are in elements without bare
stops unless stated otherwise, times in cycles. Lists are in node or channel order, a loop in the
order of its waits, so that two runs give the same bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

from fabric.display.parts import Block, Drawing, Sheet, line
from fabric.display.result import Result
from fabric.messages.text import JsonObject

SCHEMA: Final = 1

KINDS: Final = {
    "FAB-D001": "capacity deadlock",
    "FAB-D002": "dependency deadlock",
    "FAB-D003": "stream ended short",
    "FAB-D005": "slots or buffers lost",
    "FAB-D006": "hold-and-wait on chip",
    "FAB-L001": "livelock (a heuristic)",
}
"""The kind of deadlock by code. FAB-D004, elements left over, is a warning of a completed run."""


@dataclass(frozen=True)
class BlockedUnit:
    """A unit that does not continue.

    Attributes:
        operation: ``receive``, ``send``, ``capacity``; ``moving`` or ``circling`` in a livelock.
        any_of: one of the channels is enough.
        since_cycle: its clock when it began to wait; None in a livelock.
        seen_stop, awaited_stop: level of the last stop of a stream that ended inside a sub-tensor,
            and the lowest level that would have closed it; otherwise None.
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
        option: its name in ``--depth``.
        depth, held: slots, and the elements and bare stops in them.
        expected: elements in the whole stream: a number or an expression.
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
    """Units that wait for one another, or one unit that waits for an ended one.

    Attributes:
        code: key of ``KINDS``.
        units: each waits for the next, the last for the first.
        hint: the missing element, stop or release, for loops that no depth releases.
    """

    code: str
    units: list[BlockedUnit]
    channels: list[LoopChannel]
    cause: str
    hint: str


@dataclass(frozen=True)
class Depth:
    """A deeper channel.

    Attributes:
        rejected_cycle: of the deadlock with one slot less; None if that run had no deadlock.
        same_loop: the run with one slot less stops in the same loop.
    """

    option: str
    before: int
    after: int
    rejected_cycle: int | None
    same_loop: bool


@dataclass(frozen=True)
class Capacity:
    """More on-chip memory: ``[on_chip] capacity_bytes``.

    Attributes:
        rejected_cycle: of the deadlock with one byte less; None if that run had no deadlock.
    """

    before_bytes: int
    after_bytes: int
    rejected_cycle: int | None
    same_loop: bool


@dataclass(frozen=True)
class Front:
    """Elements in front of a feedback, so that its loop can start.

    Attributes:
        write: the new argument of ``connect``; the values do not matter for the run that was tried.
        rejected_cycle: of the deadlock with one element less; None if that run had no deadlock.
        statement: the user's corrected line; empty if the line is not a single call.
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
    """One depth for all channels without a depth of their own; a run with it takes ``cycles``."""

    before: int
    after: int
    cycles: int
    write: str


NOT_SOUGHT: Final = "no remedy was looked for"
NOT_ENDED: Final = "the search for a remedy has not ended"
INTERRUPTED: Final = "the search for a remedy was interrupted"


@dataclass(frozen=True)
class Remedy:
    """Changes with which the program completes, all together.

    Attributes:
        cycles: of a full run with these changes; None if no run completed.
        irreducible: no depth or front can be lowered by one, nor the capacity by a byte, with all
            else kept.
        why_not: why no remedy was found, or why its numbers may be larger than needed.
        faster: larger depths with which a run takes at least 1 % fewer cycles; empty without any.
        faster_cycles: of this run.
    """

    depths: list[Depth] = field(default_factory=list)
    capacity: Capacity | None = None
    cycles: int | None = None
    irreducible: bool = False
    trials: int = 0
    why_not: str = ""
    initial: list[Front] = field(default_factory=list)
    every_channel: EveryChannel | None = None
    faster: dict[str, int] = field(default_factory=dict)
    faster_cycles: int | None = None


@dataclass(frozen=True)
class Event:
    """The latest send, dequeue or wait at a channel of a loop."""

    cycle: int
    unit: str
    what: str


@dataclass(frozen=True, repr=False)
class DeadlockReport(Result):
    """The explanation of a deadlock or a livelock.

    Attributes:
        code, kind: of the first loop.
        cycle: when the last of the waiting units stopped.
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

    def sheet(self) -> Sheet:
        from fabric.analysis.deadlock.picture import deadlock_picture
        from fabric.analysis.deadlock.text import report_lines
        from fabric.analysis.drawing.svg import svg

        yield Drawing(lambda: svg(deadlock_picture(self)))
        code, _, rest = report_lines(self)[0].partition(": ")
        yield line((code, "bold red"), f": {rest}")
        yield Block(lambda columns: report_lines(self, columns)[1:])

    def as_json(self) -> JsonObject:
        return asdict(self)

"""The report of a deadlock as data: ``deadlock.json``, ``Deadlock.report``, ``run --json``.

``DeadlockReport`` is the whole object; every field is JSON. Counts are in elements without bare
stops unless stated otherwise, times in cycles. Lists are in node or channel order unless stated
otherwise, a loop in the order of its waits, so that two runs give the same bytes.
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
    """A unit that does not continue."""

    unit: str
    operator: str
    operation: str  # receive, send, capacity; moving or circling in a livelock
    any_of: bool  # one of the channels is enough
    channels: list[str]
    waits_for: list[str]
    since_cycle: int | None  # its clock when it began to wait; None in a livelock
    file: str
    line: int
    needs: str
    seen_stop: int | None  # level of the last stop of a stream that ended inside a sub-tensor
    awaited_stop: int | None  # the lowest level that would have closed the sub-tensor


@dataclass(frozen=True)
class LoopChannel:
    """A channel of a loop."""

    name: str  # ``producer.output -> consumer.input``
    option: str  # its name in ``--depth``
    depth: int  # slots
    held: int  # elements and bare stops in the slots
    sent: int
    taken: int
    expected: str  # elements in the whole stream: a number or an expression
    shape: str
    ended_cycle: int | None


@dataclass(frozen=True)
class Loop:
    """Units that wait for one another, or one unit that waits for a unit that has ended."""

    code: str  # key of ``KINDS``
    units: list[BlockedUnit]  # each waits for the next, the last for the first
    channels: list[LoopChannel]
    cause: str
    hint: str  # what is missing in a loop that no depth resolves; empty if unknown


@dataclass(frozen=True)
class Depth:
    """A deeper channel."""

    option: str
    before: int
    after: int
    rejected_cycle: int | None  # when the run with one slot less deadlocks; None if it does not
    same_loop: bool  # the run with one slot less stops in the same loop


@dataclass(frozen=True)
class Capacity:
    """More on-chip memory: ``[on_chip] capacity_bytes``."""

    before_bytes: int
    after_bytes: int
    rejected_cycle: int | None  # when the run with one byte less deadlocks; None if it does not
    same_loop: bool


@dataclass(frozen=True)
class Front:
    """Elements in front of a feedback, so that its loop can start."""

    stream: str
    type: str
    write: str  # the new argument of ``connect``; other values of the elements work, too
    file: str
    line: int
    count: int
    rejected_cycle: int | None  # when the run with one element less deadlocks; None if it does not
    same_loop: bool
    statement: str = ""  # the user's corrected line; empty if the line is not a single call


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
    """Changes that, all together, let the program complete."""

    depths: list[Depth] = field(default_factory=list)  # sorted by option
    capacity: Capacity | None = None
    cycles: int | None = None  # of a full run with the changes; None if no run completed
    irreducible: bool = False  # no number can be lowered by one while the others stay
    trials: int = 0
    why_not: str = ""  # why no remedy was found, or why its numbers may be larger than needed
    initial: list[Front] = field(default_factory=list)
    every_channel: EveryChannel | None = None
    faster: dict[str, int] = field(default_factory=dict)  # depths that save at least 1 % of cycles
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
        cycle: in which the last waiting unit stopped.
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
    last_events: list[Event]  # sorted by cycle
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

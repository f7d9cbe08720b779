"""The state of a run at a cycle, as data; its waits, its end, and what shapes tell of channels.

The engine makes it of a machine (``fabric.timing.machine.state_of``), the reader of traces of a
recorded run, at any cycle of it (``fabric.analysis.trace.analysis.moment``). Units and channels are
referred to by their numbers, in node and in edge order. What hangs on the program alone is in its
plan; what its shapes tell of channels in this state, in ``fabric.timing.state.expected``.

Waits that had not ended when a run stopped, in a deadlock, at an error, at an interrupt, go on to
its last cycle, and are counted under the cause they would have had. Counters and traces both ask
here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from fabric.graph.hardware.description import UnitKind
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.stream import Feedback
from fabric.messages.telling.causes import Cause, Operation
from fabric.messages.telling.place import Place
from fabric.messages.telling.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fabric.graph.hardware.description import Pages
    from fabric.graph.values.dims import Dim
    from fabric.graph.values.expression import Expression
    from fabric.graph.wiring.elaborate import Edge, Plan
    from fabric.timing.engine.off_chip import MemoryCounters


class WaitState(NamedTuple):
    """Why a parked unit does not go on.

    Attributes:
        operation: what it is trying to do.
        channels: numbers of those it waits for; none for the clock and the memories.
        since_cycle: its clock when it began to wait.
        any_of: one of the channels is enough; else all are needed.
        stops: level of the last stop seen, and the lowest that would do, where a stream has to
            close dimensions; None elsewhere.
    """

    operation: Operation
    channels: tuple[int, ...]
    since_cycle: int
    any_of: bool
    stops: tuple[int, int] | None


class UnitState(NamedTuple):
    """A unit, its clock, and where its cycles went; those waited for channels are theirs.

    Attributes:
        number: in node order.
        name: unique in the program.
        operator: class of its operator.
        kind: ``compute``, ``memory`` or ``routing``.
        place: where it was wired.
        flops_per_cycle: its compute bandwidth; 0 where it has no arithmetic.
        cycle: its clock.
        finished: its operator has ended.
        wait: what it is parked for; None where it is not.
        busy_cycles: charged for work.
        hbm_cycles: waited for the HBM.
        capacity_cycles: waited for room on chip.
        flops: floating-point operations done; None where that is not recorded.
    """

    number: int
    name: str
    operator: str
    kind: UnitKind
    place: Place
    flops_per_cycle: int
    cycle: int
    finished: bool
    wait: WaitState | None
    busy_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    flops: int | None


class ChannelState(NamedTuple):
    """A channel, what went through it, and who waited for it.

    Attributes:
        number: in edge order.
        name: ``producer.output -> consumer.input``.
        option: what ``--depth`` calls it: ``consumer.input``.
        producer, consumer: numbers of the units at its ends.
        carries: ``tile``, ``selector``, ``buffer``, ``bool`` or ``tuple``.
        depth: slots.
        forward_cycles: from the sending of an element until it is visible.
        backward_cycles: from a dequeue until its credit is usable.
        held: how many of them hold an element or a bare stop.
        sent, taken: values; bare stops are not counted.
        bare_stops: sent; those that are held are in ``held``.
        closed_cycle: the producer's clock when it ended the stream; None while it is open.
        newest_sent_cycle: when the latest element that is held set out.
        last_taken_cycle: the consumer's clock at its last dequeue.
        peak_occupancy: the most slots in use at once, credits on their way back included.
        empty_cycles: the consumer waited for an element or the end.
        full_cycles: the producer waited for the consumer to take an element.
        credit_cycles: it then waited for the credit on its way back.
        left_over: values that came after the consumer's operator had ended.
    """

    number: int
    name: str
    option: str
    producer: int
    consumer: int
    carries: str
    depth: int
    forward_cycles: int
    backward_cycles: int
    held: int
    sent: int
    taken: int
    bare_stops: int
    closed_cycle: int | None
    newest_sent_cycle: int | None
    last_taken_cycle: int | None
    peak_occupancy: int
    empty_cycles: int
    full_cycles: int
    credit_cycles: int
    left_over: int


class OnChipState(NamedTuple):
    """The on-chip memory; who holds and wants what is known where its capacity is limited.

    Attributes:
        capacity_bytes: None for unlimited.
        requests: units that wait for room and the bytes they want, in the order they are served.
        held: units that asked for room that is not given back, and its bytes, in node order; None
            where that is not recorded.
        pages: in which room is given, so that bytes are those of whole pages; None for in bytes.
    """

    capacity_bytes: int | None
    requests: tuple[tuple[int, int], ...]
    held: tuple[tuple[int, int], ...] | None
    pages: Pages | None = None

    @property
    def room(self) -> str:
        """What there is, in words; the capacity is limited."""
        assert self.capacity_bytes is not None
        pages = self.pages
        if pages is None:
            return counted(self.capacity_bytes, "byte")
        return self.amount(pages.within(self.capacity_bytes) * pages.page_bytes)

    def amount(self, room_bytes: int) -> str:
        """Say in words how much ``room_bytes`` is of what room is given in."""
        pages = self.pages
        if pages is None:
            return counted(room_bytes, "byte")
        number = counted(room_bytes // pages.page_bytes, "page")
        return f"{number} of {counted(pages.page_bytes, 'byte')}"

    def number(self, room_bytes: int) -> int:
        """Return how many bytes or pages ``room_bytes`` is."""
        return room_bytes if self.pages is None else room_bytes // self.pages.page_bytes


@dataclass(frozen=True, slots=True)
class RunState:
    """A run at a cycle.

    Attributes:
        program: its name.
        cycles: the largest clock, the HBM's included once it has stopped.
        units: in node order.
        channels: in edge order.
        on_chip: the on-chip memory.
        hbm_bytes_moved: by the HBM, whole requests each; 0 where there is none.
        hbm: what it has counted; None where its model counts nothing, and of a run that goes on,
            where only its memory knows.
    """

    program: str
    cycles: int
    units: tuple[UnitState, ...] = field(repr=False)
    channels: tuple[ChannelState, ...] = field(repr=False)
    on_chip: OnChipState
    hbm_bytes_moved: int
    hbm: MemoryCounters | None = field(repr=False)

    @property
    def elements(self) -> int:
        """Values dequeued so far, on all channels."""
        return sum(channel.taken for channel in self.channels)

    @property
    def flops(self) -> int:
        """Floating-point operations of the units that are known to have done them."""
        return sum(unit.flops for unit in self.units if unit.flops is not None)

    @property
    def waiting(self) -> int:
        """How many units wait."""
        return sum(unit.wait is not None for unit in self.units)

    @property
    def stopped_cycle(self) -> int:
        """The latest clock of the units that wait."""
        return max((unit.cycle for unit in self.units if unit.wait is not None), default=0)


class OpenWait(NamedTuple):
    """What a unit was still waiting for.

    Attributes:
        cause: under which the cycles count.
        channel: waited for, the first one of several; None for the memories.
        since_cycle: the unit's clock, which stands still while it waits.
    """

    cause: Cause
    channel: int | None
    since_cycle: int


def open_waits(state: RunState) -> list[OpenWait | None]:
    """Return for each unit the wait that goes on to the end of the run.

    Args:
        state: at the run's end, or in between while nothing can run.

    Returns:
        In node order; None where the wait had ended or the unit could have gone on.
    """
    return [_open_wait(unit) for unit in state.units]


def _open_wait(unit: UnitState) -> OpenWait | None:
    wait = unit.wait
    if wait is None:
        return None
    cause = wait.operation.cause
    if cause is None:
        # It asked the clock for its turn: to merge what comes first, or to fail in order.
        if not wait.channels:
            return None
        cause = Cause.EMPTY
    return OpenWait(cause, wait.channels[0] if wait.channels else None, unit.cycle)


Ending: TypeAlias = Literal["completed", "deadlock", "livelock", "error", "interrupted"]
"""All operators ended; nothing can happen any more; it moves and gets nowhere; an operator failed;
whoever ran it did not want to wait any longer."""


class Expected(NamedTuple):
    """What is told of one channel.

    Attributes:
        in_all: how many elements it should carry: a number, or an expression.
        shape: of its stream.
        per_output: how many of its elements make one of its consumer's first output; None where
            the shapes do not say that it is a whole number above 1.
        feedback: where the ``Feedback`` that it closes was declared; None where it closes none.
    """

    in_all: int | str
    shape: str
    per_output: int | None
    feedback: Place | None


UNTOLD: Final = Expected("unknown", "", None, None)
"""Where nobody has looked at the shapes."""


def expected_of(
    plan: Plan, state: RunState, channels: Iterable[ChannelState]
) -> Mapping[int, Expected]:
    """Return what the shapes of ``plan`` tell of ``channels``, by their numbers.

    Symbols have values where a stream that has ended shows them in ``state``.
    """
    sizes = _Sizes(plan, state)
    return {channel.number: _expected(plan.edges[channel.number], sizes) for channel in channels}


def _expected(edge: Edge, sizes: _Sizes) -> Expected:
    shape = edge.type.shape
    count: Dim = 1
    for dim in shape:
        count *= sizes.valued(dim)
    stream = edge.consumer.inputs[edge.input]
    return Expected(
        count if isinstance(count, int) else str(count),
        f"[{', '.join(map(str, shape))}]",
        _per_output(edge),
        stream.place if isinstance(stream, Feedback) else None,
    )


def _per_output(edge: Edge) -> int | None:
    outputs = edge.consumer.outputs
    if not outputs:
        return None
    read, made = edge.consumer.inputs[edge.input].type.count, outputs[0].type.count
    if isinstance(read, int) and isinstance(made, int):
        ratio = read // made if made and read % made == 0 else 0
    elif made == 0:
        return None
    else:
        quotient = read / made
        ratio = quotient if isinstance(quotient, int) else 0
    return ratio if ratio > 1 else None


class _Sizes:
    """Sizes of symbols that streams which have ended show."""

    def __init__(self, plan: Plan, state: RunState) -> None:
        self._values: dict[Symbol, int] = {}
        ended = [
            (edge.type.shape, channel.sent)
            for edge, channel in zip(plan.edges, state.channels, strict=True)
            if channel.closed_cycle is not None
        ]
        while sum(self._bind(shape, count) for shape, count in ended):
            pass

    def valued(self, dim: Dim) -> Dim:
        """Return ``dim`` with the symbols that have values replaced by them."""
        if isinstance(dim, int):
            return dim
        return dim.with_sizes(self._values)

    def _bind(self, shape: tuple[Dim, ...], count: int) -> bool:
        """Give a value to a symbol that stands alone in ``shape``; whether that was new."""
        open_dims: list[Expression] = []
        known = 1
        for dim in map(self.valued, shape):
            if isinstance(dim, int):
                known *= dim
            else:
                open_dims.append(dim)
        if (
            len(open_dims) != 1
            or not isinstance(open_dims[0], Symbol)
            or not known
            or count % known
        ):
            return False
        self._values[open_dims[0]] = count // known
        return True

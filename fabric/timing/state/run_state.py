"""The state of a run at a cycle, as data: its waits, its end, and the expected channel totals.

Units are numbered in node order, channels in edge order. A wait that is open when a run stops lasts
until the final cycle, and counts under its cause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from fabric.graph.hardware.description import UnitKind
from fabric.graph.values.dims import Dim
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.stream import Feedback
from fabric.messages.causes import Cause, Operation
from fabric.messages.place import Place
from fabric.messages.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fabric.graph.hardware.description import Pages
    from fabric.graph.wiring.elaborate import Edge, Plan
    from fabric.timing.engine.off_chip import MemoryCounters


class WaitState(NamedTuple):
    """Why a parked unit waits.

    Attributes:
        channels: numbers; empty for the clock and the memories.
        since_cycle: its clock when it began to wait.
        any_of: whether one of the channels is enough; else all are needed.
        stops: levels of the last stop seen, and of the lowest that closes the awaited dimensions.
    """

    operation: Operation
    channels: tuple[int, ...]
    since_cycle: int
    any_of: bool
    stops: tuple[int, int] | None


class UnitFacts(Struct, frozen=True):
    """The constant fields of a unit.

    Attributes:
        flops_per_cycle: 0 for units without arithmetic.
    """

    number: int
    name: str
    operator: str
    kind: UnitKind
    place: Place
    flops_per_cycle: int


class UnitState(UnitFacts, frozen=True):
    """A unit, its clock, and its cycles by cause; cycles spent on channels are in their states.

    Attributes:
        hbm_cycles, capacity_cycles: waited for the HBM, and for room on chip.
        flops: None if not recorded.
    """

    cycle: int
    finished: bool
    wait: WaitState | None
    busy_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    flops: int | None


class ChannelFacts(Struct, frozen=True):
    """The constant fields of a channel; only trials of remedies change the depth.

    Attributes:
        name: ``producer.output -> consumer.input``.
        option: its name in ``--depth``: ``consumer.input``.
        producer, consumer: numbers of units.
        carries: ``tile``, ``selector``, ``buffer``, ``bool`` or ``tuple``.
        forward_cycles: from the sending of an element until it is visible.
        backward_cycles: from a dequeue until its credit is usable.
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


class ChannelState(ChannelFacts, frozen=True):
    """A channel, its traffic, and the waits of its units.

    Attributes:
        held: slots that hold an element or a bare stop.
        sent, taken: values, without bare stops.
        closed_cycle: None while the stream is open.
        newest_sent_cycle: of the latest held element.
        peak_occupancy: includes slots whose credit is on its way back.
        empty_cycles: the consumer waited for an element or the end.
        full_cycles: the producer waited for a dequeue.
        credit_cycles: the producer waited for a credit on its way back.
        left_over: values that came after the consumer's operator had ended.
    """

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
    """The on-chip memory.

    Attributes:
        capacity_bytes: None for unlimited.
        requests: waiting units and their bytes, in the order of service.
        held: units and the bytes they hold, in node order; None if not recorded.
        pages: None if room is given in bytes.
    """

    capacity_bytes: int | None
    requests: tuple[tuple[int, int], ...]
    held: tuple[tuple[int, int], ...] | None
    pages: Pages | None = None

    @property
    def room(self) -> str:
        """Return the capacity, which is limited, in words."""
        assert self.capacity_bytes is not None
        pages = self.pages
        if pages is None:
            return counted(self.capacity_bytes, "byte")
        return self.amount(pages.within(self.capacity_bytes) * pages.page_bytes)

    def amount(self, room_bytes: int) -> str:
        """Return ``room_bytes`` in words, as bytes or pages."""
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
        cycles: the largest clock, including the HBM's once it has stopped.
        hbm_bytes_moved: whole requests; 0 without an HBM.
        hbm: None if the model has no counters, and in a held run.
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
        """Floating-point operations of the units that report them."""
        return sum(unit.flops for unit in self.units if unit.flops is not None)

    @property
    def waiting(self) -> int:
        return sum(unit.wait is not None for unit in self.units)

    @property
    def stopped_cycle(self) -> int:
        """The latest clock of the units that wait."""
        return max((unit.cycle for unit in self.units if unit.wait is not None), default=0)


class OpenWait(NamedTuple):
    """A wait that was open at the end; its channel is the first of several."""

    cause: Cause
    channel: int | None
    since_cycle: int


def open_waits(state: RunState) -> list[OpenWait | None]:
    """Return the wait of each unit that lasts to the end of the run; None if it could continue.

    ``state`` is at the end of the run, or at a cycle in which no unit can run.
    """
    return [_open_wait(unit) for unit in state.units]


def _open_wait(unit: UnitState) -> OpenWait | None:
    wait = unit.wait
    if wait is None:
        return None
    cause = wait.operation.cause
    if cause is None:
        # The unit waits for its turn in a cycle: to merge the first input, or to fail in order.
        if not wait.channels:
            return None
        cause = Cause.EMPTY
    return OpenWait(cause, wait.channels[0] if wait.channels else None, unit.cycle)


Ending: TypeAlias = Literal["completed", "deadlock", "livelock", "error", "interrupted"]
"""How a run ended; ``completed`` if all operators have ended."""


class Expected(NamedTuple):
    """The expected traffic of a channel.

    Attributes:
        in_all: number of elements, or an expression.
        per_output: elements for each output element of the consumer, if a whole number above 1.
        feedback: the declaration of the ``Feedback`` that the channel closes.
    """

    in_all: int | str
    shape: str
    per_output: int | None
    feedback: Place | None


UNEVALUATED: Final = Expected("unknown", "", None, None)
"""The traffic of a channel whose shape was not evaluated."""


def expected_of(
    plan: Plan, state: RunState, channels: Iterable[ChannelState]
) -> Mapping[int, Expected]:
    """Return the expected traffic of ``channels`` by number, from the shapes of ``plan``.

    Symbols have the values that ended streams show in ``state``.
    """
    learned = LearnedSizes()
    ended = [
        (edge.type.shape, channel.sent)
        for edge, channel in zip(plan.edges, state.channels, strict=True)
        if channel.closed_cycle is not None
    ]
    while sum(learned.bind(*stream) is not None for stream in ended):
        pass
    sizes = {symbol: size for symbol, size in learned.sizes.items() if isinstance(size, int)}
    return {channel.number: _expected(plan.edges[channel.number], sizes) for channel in channels}


def _expected(edge: Edge, sizes: Mapping[Symbol, int]) -> Expected:
    shape = edge.type.shape
    count: Dim = 1
    for dim in shape:
        count *= dim if isinstance(dim, int) else dim.with_sizes(sizes)
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
    read, written = edge.consumer.inputs[edge.input].type.count, outputs[0].type.count
    if isinstance(read, int) and isinstance(written, int):
        ratio = read // written if written and read % written == 0 else 0
    elif written == 0:
        return None
    else:
        quotient = read / written
        ratio = quotient if isinstance(quotient, int) else 0
    return ratio if ratio > 1 else None


class LearnedSizes:
    """Sizes of symbols, learned from the elements that streams of known shapes carried.

    Attributes:
        sizes: by symbol; a fraction if the other dimensions do not divide the elements.
    """

    def __init__(self) -> None:
        self.sizes: Final[dict[Symbol, int | Fraction]] = {}

    def bind(self, shape: tuple[Dim, ...], elements: int) -> Symbol | None:
        """Learn from a stream with one unknown dimension, and return its symbol; else None."""
        unknown = self.unknown(shape)
        if len(unknown) != 1 or not isinstance(symbol := self._valued(unknown[0]), Symbol):
            return None
        product = math.prod(self._valued(dim) for dim in shape if dim is not unknown[0])
        if not product:
            return None
        size = Fraction(elements) / product
        self.sizes[symbol] = int(size) if size.denominator == 1 else size
        return symbol

    def _valued(self, dim: Dim) -> Dim:
        return dim if isinstance(dim, int) else dim.with_sizes(self.sizes)

    def unknown(self, shape: tuple[Dim, ...]) -> list[Dim]:
        """Return the dimensions of ``shape`` with unknown symbols."""
        bound = self.sizes.keys()
        return [dim for dim in shape if not isinstance(dim, int) and not dim.free_symbols <= bound]

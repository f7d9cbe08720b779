"""Virtual units: an operator's local clock, and its cycles by cause.

Every cycle between 0 and a unit's clock is counted under exactly one cause.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final, Protocol, SupportsIndex

from typing_extensions import override

from fabric.graph.hardware.description import NO_REGISTERS, RegisterDescription
from fabric.timing.engine.conductor import Strand

if TYPE_CHECKING:
    from fabric.graph.hardware.description import UnitKind
    from fabric.messages.causes import Operation
    from fabric.messages.place import Place


class Awaited(Protocol):
    """The channel of a wait.

    Attributes:
        reader: the unit that an element or the end of the stream wakes.
    """

    reader: Unit | None


class Wait:
    """Why a parked unit waits.

    Attributes:
        operation: the operation that cannot complete yet.
        channels: the channels it waits for; empty for the clock, the HBM and the capacity.
        since_cycle: the unit's clock when it began to wait.
        any_of: whether one of the channels is enough, as in a merge; else all are needed.
        stops: levels of the last stop seen, and of the lowest that closes the awaited dimensions.
    """

    __slots__ = ("any_of", "channels", "operation", "since_cycle", "stops")

    def __init__(
        self,
        operation: Operation,
        channels: tuple[Awaited, ...],
        since_cycle: int,
        *,
        any_of: bool = False,
        stops: tuple[int, int] | None = None,
    ) -> None:
        self.operation: Final = operation
        self.channels: Final = channels
        self.since_cycle = since_cycle
        self.any_of: Final = any_of
        self.stops: Final = stops


class Unit:
    """A unit that routes or reshapes streams: a local clock and counters, no arithmetic.

    Attributes:
        name: unique in the program.
        index: the node's place in the order that breaks ties.
        place: where the operator was wired.
        bytes_per_cycle: on-chip bandwidth of each load and store port.
        now: the local clock, in cycles; it only moves forward.
        next_look_cycle: the earliest cycle in which it looks at an input.
        next_end_cycle: the earliest cycle in which its outputs end; 0 without registers for ends.
        busy_cycles: cycles charged for work.
        off_chip_cycles: cycles waited for the HBM.
        capacity_cycles: cycles waited for room in a memory unit.
        off_chip_bytes: of tiles it loaded from or stored to off-chip memory.
        flops: floating-point operations done.
        wait: set while the unit is parked.
        drains: the operator has ended, and later elements are discarded.
        finished: all its inputs have ended, too.
        strand: the task its operator runs in.

    The slot ``guard`` is for ``fabric.timing.guards``.
    """

    kind: UnitKind = "routing"

    __slots__ = (
        "busy_cycles",
        "bytes_per_cycle",
        "capacity_cycles",
        "drains",
        "finished",
        "flops",
        "guard",
        "index",
        "name",
        "next_end_cycle",
        "next_look_cycle",
        "now",
        "off_chip_bytes",
        "off_chip_cycles",
        "place",
        "registers",
        "strand",
        "wait",
    )

    def __init__(
        self,
        name: str,
        index: int,
        place: Place,
        *,
        bytes_per_cycle: int,
        registers: RegisterDescription = NO_REGISTERS,
    ) -> None:
        self.name: Final = name
        self.index: Final = index
        self.place: Final = place
        self.bytes_per_cycle: Final = bytes_per_cycle
        self.registers: Final = registers
        self.now = 0
        self.next_look_cycle = self.next_end_cycle = 0
        self.busy_cycles = 0
        self.off_chip_cycles = 0
        self.off_chip_bytes = 0
        self.capacity_cycles = 0
        self.flops = 0
        self.wait: Wait | None = None
        self.drains = False
        self.finished = False
        self.strand = Strand()

    def charge(self, cycles: int) -> None:
        """Work for ``cycles``, at least 0, of any integer type."""
        if type(cycles) is not int or cycles < 0:
            cycles = _whole(cycles, "cycles are charged")
        self.now += cycles
        self.busy_cycles += cycles

    def answered(self, cycle: int) -> None:
        """Move the clock forward to ``cycle``, in which the unit sees its complete burst."""
        self.off_chip_cycles += cycle - self.now
        self.now = cycle

    def reached(self) -> None:
        """Note that the awaited cycle has come."""

    def transfer(self, size_bytes: int) -> int:
        """Return the cycles ``size_bytes`` take through one on-chip port."""
        return -(-size_bytes // self.bytes_per_cycle)


class ComputeUnit(Unit):
    """A unit with arithmetic: an element takes the longest of load, compute and store."""

    kind: UnitKind = "compute"

    __slots__ = ("flops_per_cycle",)

    def __init__(
        self,
        name: str,
        index: int,
        place: Place,
        *,
        flops_per_cycle: int,
        bytes_per_cycle: int,
        registers: RegisterDescription = NO_REGISTERS,
    ) -> None:
        super().__init__(name, index, place, bytes_per_cycle=bytes_per_cycle, registers=registers)
        self.flops_per_cycle: Final = flops_per_cycle

    def compute(self, flops: int) -> int:
        """Count ``flops`` as done and return the cycles they take."""
        if type(flops) is not int or flops < 0:
            flops = _whole(flops, "FLOPs are computed")
        self.flops += flops
        return -(-flops // self.flops_per_cycle)


class MemoryUnit(Unit):
    """A unit that holds tiles: loads, stores and buffers run on it."""

    kind: UnitKind = "memory"

    __slots__ = ()


def _whole(number: SupportsIndex, done: str) -> int:
    """Return a ``number`` of any integer type as Python's ``int``, which never overflows."""
    try:
        whole = operator.index(number)
    except TypeError:
        raise TypeError(f"{number!r} {done}: expected an integer") from None
    if whole < 0:
        raise ValueError(f"{whole} {done}: expected at least 0")
    return whole


class Reading(int):
    """A cycle relative to a unit's clock.

    Attributes:
        order: operation number of the reading; -1 for the start of the run.
        later_cycles: from the clock to the cycle.
    """

    order: int
    later_cycles: int

    @classmethod
    def at(cls, cycle: int, order: int, later_cycles: int = 0) -> Reading:
        """Return ``cycle``, which is ``later_cycles`` after the reading ``order``."""
        reading = cls(cycle)
        reading.order = order
        reading.later_cycles = later_cycles
        return reading

    @override
    def __add__(self, cycles: int) -> Reading:
        more = int(cycles)
        return Reading.at(int(self) + more, self.order, self.later_cycles + more)

    @override
    def __sub__(self, cycles: int) -> Reading:
        return self + -cycles

    __radd__ = __add__


START: Final = Reading.at(0, -1)
"""Cycle 0, relative to no clock."""


def as_cycle(cycle: object) -> int:
    """Return an integer of any type as Python's ``int``; a reading is unchanged.

    Raises:
        TypeError: it is not an integer.
    """
    return cycle if isinstance(cycle, Reading) else operator.index(cycle)  # type: ignore[arg-type]

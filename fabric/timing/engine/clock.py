"""The global virtual clock: counts the units that can run, and orders events.

Units run ahead in their own time. The clock advances only when no unit can run: to the first
completion of an off-chip burst, or to the earliest cycle that a unit wants to reach. If there is
neither, the program is over or deadlocked.
"""

from __future__ import annotations

import heapq
import itertools
import types
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

from fabric.graph.values.fit import whole
from fabric.messages.causes import Operation
from fabric.messages.errors import ProgramError
from fabric.timing.engine.conductor import WOKEN, Conductor, Switching
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.unit import Awaited, Unit, Wait

if TYPE_CHECKING:
    from fabric.graph.values.value import Element

_REACH: Final = Operation.REACH
"""Looked up once, because finding a member of an enumeration takes as long as making a wait."""

_NEVER: Final = 1 << 62


class Stopped(BaseException):
    """Ends an operator that continues although the run has stopped."""


class VirtualClock:
    """Parks and wakes units, and advances when no unit can run.

    Attributes:
        now: every event before this cycle has happened.
        stopping: whether the run stops when no unit can run, instead of advancing.
        stopped: whether the run is over; work of cancelled operators does not count.
        pace_cycle: units with clocks at or after it wait until no other unit can run.
        chose: called with each unit that waits for a cycle, since inputs that arrive until then may
            decide its work.
    """

    def __init__(
        self, on_quiescence: Callable[[], None], on_heartbeat: Callable[[], None], beat_cycles: int
    ) -> None:
        self.now = 0
        self.running = 0
        self.stopping = False
        self.stopped = False
        self.conductor: Final = Conductor()
        self.memory: OffChip | None = None
        self.network: Network | None = None
        self.chose: Callable[[Unit], object] | None = None
        self._on_quiescence: Final = on_quiescence
        self._on_heartbeat: Final = on_heartbeat
        self._beat_cycles: Final = beat_cycles
        self._next_beat = beat_cycles
        # A wait that an element ended stays in the heap. Numbers order the waits of one unit.
        self._reaching: list[tuple[int, int, int, Unit, Wait]] = []
        self._numbers: Final = itertools.count()
        self.pace_cycle = self._watch_cycle = self._bound_cycle = _NEVER
        self._pace_cycles = 0
        self._pacing: list[Unit] = []
        self._on_pace: Callable[[], None] | None = None

    def watch(self, on_pace: Callable[[], None], pace_cycles: int) -> None:
        """Call ``on_pace`` about every ``pace_cycles``, even if some unit can always run.

        Units that are ``pace_cycles`` ahead wait for the others. Their clocks do not change.
        """
        self._on_pace = on_pace
        self._pace_cycles = self._watch_cycle = pace_cycles
        self.bound(None)

    def bound(self, cycle: int | None) -> None:
        """Let units with clocks at or after ``cycle`` wait for other units; None: no bound."""
        self._bound_cycle = _NEVER if cycle is None else cycle
        self.pace_cycle = pace_cycle = min(self._watch_cycle, self._bound_cycle)
        behind = [unit for unit in self._pacing if unit.now < pace_cycle]
        self._pacing = [unit for unit in self._pacing if unit.now >= pace_cycle]
        for unit in behind:
            self.wake(unit)

    @property
    def spent(self) -> bool:
        """Whether no burst, transfer, wait for a cycle or wait for the pace is pending."""
        pending = self.memory is not None and self.memory.pending
        carries = self.network is not None and self.network.next_cycle < _NEVER
        return not (pending or carries or self._pacing or self._next_reach())

    def pace_after(self, cycle: int) -> int:
        """Return the first cycle after ``cycle`` at which units wait for other units.

        It is 1 << 62 if ``watch`` was not called.
        """
        return (cycle // self._pace_cycles + 1) * self._pace_cycles if self._on_pace else _NEVER

    def keep_pace(self, unit: Unit) -> Switching[None]:
        """Wait until no other unit can run."""
        self.note_pacing(unit)
        return self.park(unit, Wait(_REACH, (), unit.now))

    @types.coroutine
    def park(self, unit: Unit, wait: Wait) -> Switching[None]:
        """Suspend ``unit`` until it is woken; the last unit to park advances the clock."""
        unit.wait = wait
        self.running = running = self.running - 1
        # No unit is woken after the run, though an operator may shield itself and wait again.
        if not running or self.stopped:
            self._rest()
        if unit.wait is not None:
            strand = unit.strand
            strand.parked = True
            outcome = yield strand.suspension
            if outcome is not WOKEN:
                self._cancelled(unit)
                outcome.unwrap()

    def _cancelled(self, unit: Unit) -> None:
        """Refuse a cancellation by the operator, after counting its unit as running again."""
        if not self.stopped:
            self.wake(unit)
            raise ProgramError(
                f"{unit.name} has cancelled its wait: expected an operator without timeouts, since "
                "cycles do not depend on the host's time"
            )

    def _rest(self) -> None:
        if not self.stopped:
            self._settle()
        if self.stopped:
            # Units that park after the end of the run stop here, too.
            self.running = 1
            raise Stopped

    def wake(self, unit: Unit) -> None:
        if unit.wait is None:
            return
        unit.wait = None
        self.running += 1
        strand = unit.strand
        if strand.parked:
            strand.parked = False
            self.conductor.resume(strand)

    def note_pacing(self, unit: Unit) -> None:
        """Wake ``unit``, which is too far ahead, when no other unit can run."""
        self._pacing.append(unit)

    def leave(self, units: int = 1) -> None:
        """Subtract ``units`` from the number of units that can run."""
        self.running -= units
        if not self.running:
            self._settle()

    async def reach(
        self,
        unit: Unit,
        cycle: int,
        watching: Sequence[Awaited] = (),
        operation: Operation = _REACH,
    ) -> None:
        """Wait until no event before ``cycle`` can happen any more.

        Units that wait for one cycle continue one at a time, in node order. An element that arrives
        in a channel of ``watching`` ends the wait early.
        """
        if cycle.__class__ is not int:
            cycle = whole(cycle, "is a cycle to reach")
        if self.chose is not None:
            self.chose(unit)
        wait = Wait(operation, tuple(watching), unit.now, any_of=True)
        heapq.heappush(self._reaching, (cycle, unit.index, next(self._numbers), unit, wait))
        for channel in watching:
            channel.reader = unit
        await self.park(unit, wait)
        for channel in watching:
            channel.reader = None
        unit.reached()

    def _settle(self) -> None:
        if self.stopping:
            if not self._allocated():
                self._on_quiescence()
            return
        reaching = self._next_reach()
        if self.now >= self._next_beat:
            self._next_beat = (self.now // self._beat_cycles + 1) * self._beat_cycles
            self._on_heartbeat()
        # Units that are too far ahead continue after all earlier events.
        horizon = self.pace_cycle if self._pacing else _NEVER
        reached = bool(reaching) and (not self._pacing or reaching[0][0] < horizon)
        if reached:
            horizon = min(horizon, reaching[0][0])
        if self._carried(horizon) or self._answered(horizon):
            return
        if reached:
            cycle, _, _, unit, _ = heapq.heappop(reaching)
            self.now = max(self.now, cycle)
            self.wake(unit)
        elif self._pacing:
            self._let_pace()
        else:
            self._on_quiescence()

    def _allocated(self) -> bool:
        """Wake a unit that waits only for its turn, although there is room on chip for it."""
        for cycle, _, _, unit, wait in sorted(self._reaching, key=itemgetter(0, 1, 2)):
            if wait is unit.wait and wait.operation is Operation.CAPACITY and cycle == unit.now:
                self.wake(unit)
                return True
        return False

    def _answered(self, horizon: int) -> bool:
        memory = self.memory
        if memory is None or not memory.pending:
            return False
        done = memory.advance(horizon)
        if done:
            self.now = max(self.now, min(horizon, *(unit.now for unit in done)))
            for unit in done:
                self.wake(unit)
        return bool(done)

    def _carried(self, horizon: int) -> bool:
        """Advance the network and the memory up to ``horizon``; return whether a unit was woken.

        The earlier event comes first. In one cycle, the memory's event comes first: its stamps are
        in this cycle or later, and stamps of the network are in later cycles.
        """
        network = self.network
        last = min(horizon, _NEVER - 1)
        while network is not None and (cycle := network.next_cycle) <= last:
            if self._answered(cycle):
                return True
            network.advance(last, self._quiet_until(horizon))
            self.now = max(self.now, network.cycle)
            if self.running:
                return True
        return False

    def _quiet_until(self, horizon: int) -> int:
        """Return the last cycle before which only the network acts."""
        if self.memory is not None and self.memory.pending:
            return 0
        return min(horizon, self.pace_cycle, self._next_beat - 1)

    def _next_reach(self) -> list[tuple[int, int, int, Unit, Wait]]:
        reaching = self._reaching
        while reaching and reaching[0][3].wait is not reaching[0][4]:
            heapq.heappop(reaching)
        return reaching

    def _let_pace(self) -> None:
        if self._on_pace is not None:
            self._on_pace()
        if self.stopping:
            self._on_quiescence()
            return
        self.now = max(self.now, self.pace_cycle)
        pacing, self._pacing = self._pacing, []
        self._watch_cycle = self.pace_after(min(unit.now for unit in pacing))
        self.pace_cycle = min(self._watch_cycle, self._bound_cycle)
        for unit in pacing:
            self.wake(unit)


class Network(Protocol):
    """Links that channels share.

    The network advances only when no unit can run.
    """

    @property
    def next_cycle(self) -> int:
        """The cycle of the next event, if nothing is sent before; 1 << 62 without an event.

        Elements that arrive with this event have later stamps.
        """

    @property
    def cycle(self) -> int:
        """The cycle of the latest event."""

    def advance(self, horizon_cycle: int, quiet_cycle: int) -> None:
        """Advance to the next event up to ``horizon_cycle``, and deliver arrived elements.

        It may process more events up to ``quiet_cycle``, before which nothing else acts.
        """


class SharedLinks(Network, Protocol):
    """Links on which units send."""

    def begin(self, flow: int, cycle: int, size_bytes: int) -> None:
        """Send ``size_bytes`` on one of the channels of ``flow``, not before ``cycle``.

        A broadcast begins once it was sent on all channels.
        """


class Way:
    """Elements of a channel on the network.

    Attributes:
        flow: number of the route, or of the tree of routes.
        sent: oldest first: the producer's clock, the requested cycle, the element.
        arrived: of each element not yet dequeued, the cycle of its send and its delay by links.
        links_cycles: cycles that the consumer waited for links.
        closed_cycle: end of the stream, while elements are on links.
    """

    __slots__ = ("arrived", "bytes_sent", "closed_cycle", "flow", "links", "links_cycles", "sent")

    def __init__(self, links: SharedLinks, flow: int) -> None:
        self.links: Final = links
        self.flow: Final = flow
        self.sent: Final[deque[tuple[int, int, Element]]] = deque()
        self.arrived: Final[deque[tuple[int, int]]] = deque()
        self.links_cycles = 0
        self.bytes_sent = 0
        self.closed_cycle: int | None = None

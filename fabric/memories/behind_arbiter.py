"""What is behind the arbiter of the arbitrated memory: a steady one, or a channel with banks.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval, and the
generic controller of Ramulator 2.0 (CMU-SAFARI), which it contains.
"""

from __future__ import annotations

import bisect
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from fabric.hardware.arbitrated import ArbitratedBanksDescription, ArbitratedDescription

if TYPE_CHECKING:
    from fabric.hardware.arbitrated import PortDescription

__all__ = ["Request", "behind_arbiter"]

ACTIVATE, PRECHARGE, READ, WRITE = range(4)


class Request:
    """A request on its way.

    Attributes:
        port: that asks.
        address: counted from the beginning of the port's stream.
        write: else it reads.
        back_cycle: from which its answer can go back; None before it is answered.
    """

    __slots__ = ("address", "back_cycle", "port", "write")

    def __init__(self, port: int, address: int, write: bool) -> None:
        """Have it wait to be served."""
        self.port: Final = port
        self.address: Final = address
        self.write: Final = write
        self.back_cycle: int | None = None


class Behind(Protocol):
    """What serves the requests that the arbiter lets through."""

    def take(self, request: Request, cycle: int) -> bool:
        """Take a request before anything else happens in ``cycle``; return whether it has room."""
        ...

    def step(self, cycle: int) -> Request | None:
        """Do what ``cycle`` does; return the read that is answered then."""
        ...


def behind_arbiter(description: PortDescription) -> Behind:
    """Return what ``description`` puts behind the arbiter."""
    if isinstance(description, ArbitratedBanksDescription):
        return _Channel(description)
    assert isinstance(description, ArbitratedDescription)
    return _Steady(description)


class _Steady:
    """Starts a request every so many cycles; answers reads so many cycles later, in order."""

    def __init__(self, description: ArbitratedDescription) -> None:
        self._description: Final = description
        self._free_cycle = 0
        self._due: Final[deque[tuple[int, Request]]] = deque()

    def take(self, request: Request, cycle: int) -> bool:
        start = max(cycle, self._free_cycle)
        self._free_cycle = start + self._description.interval_cycles
        if not request.write:
            # The answer is there in the last of the cycles, to be seen in the one after it.
            self._due.append((start + self._description.latency_cycles - 1, request))
        return True

    def step(self, cycle: int) -> Request | None:
        if self._due and self._due[0][0] <= cycle:
            return self._due.popleft()[1]
        return None


class _Waiting:
    """A request in the channel: where it is, and since when.

    Attributes:
        since_cycle: the cycle in which it came; no two come in one.
        command: its next one.
    """

    __slots__ = ("bank", "command", "request", "row", "since_cycle")

    def __init__(self, request: Request, bank: _Bank, row: int, since_cycle: int) -> None:
        self.request: Final = request
        self.bank: Final = bank
        self.row: Final = row
        self.since_cycle: Final = since_cycle
        self.command = ACTIVATE


class _Level:
    """A bank, or what has banks: the first cycle in which each command can go.

    Attributes:
        ready: by command.
    """

    __slots__ = ("_after", "ready")

    def __init__(self, after: dict[int, list[tuple[int, int]]]) -> None:
        """Have all commands go at once.

        Args:
            after: of each command, what has to wait for it, and for how long.
        """
        self.ready: Final = [0, 0, 0, 0]
        self._after: Final = after

    def issue(self, command: int, cycle: int) -> None:
        """Let others wait for ``command``."""
        for other, cycles in self._after.get(command, ()):
            self.ready[other] = max(self.ready[other], cycle + cycles)


class _Bank(_Level):
    """A bank and what it is in.

    Attributes:
        levels: it, its bank group, its pseudo channel and the channel.
        activated: cycles of the latest four activations in the pseudo channel.
        row: that is open; None where none is.
        opening: a request for which its row was opened waits.
    """

    __slots__ = ("activated", "levels", "opening", "row")

    def __init__(
        self,
        after: dict[int, list[tuple[int, int]]],
        above: tuple[_Level, ...],
        activated: deque[int],
    ) -> None:
        super().__init__(after)
        self.levels: Final = (self, *above)
        self.activated: Final = activated
        self.row: int | None = None
        self.opening = False


class _Channel:
    """One channel that issues one command a cycle, the oldest one of those that can go.

    Requests whose row was opened for them go first, then the reads or the writes.
    """

    def __init__(self, description: ArbitratedBanksDescription) -> None:
        self._description: Final = description
        self._banks: Final = _banks_of(description)
        self._opened: Final[list[_Waiting]] = []
        self._reads: Final[list[_Waiting]] = []
        self._writes: Final[list[_Waiting]] = []
        self._writing = False
        self._data: Final[deque[tuple[int, Request]]] = deque()

    def take(self, request: Request, cycle: int) -> bool:
        window = self._writes if request.write else self._reads
        if len(window) == self._description.window_requests:
            return False
        made_of = self._description
        number, _ = divmod(request.address, made_of.row_bytes)
        number, pseudo_channel = divmod(number, made_of.pseudo_channels)
        number, group = divmod(number, made_of.bank_groups)
        number, bank = divmod(number, made_of.banks)
        place = (pseudo_channel * made_of.bank_groups + group) * made_of.banks + bank
        window.append(_Waiting(request, self._banks[place], number % made_of.rows, cycle))
        return True

    def step(self, cycle: int) -> Request | None:
        answered = None
        if self._data and self._data[0][0] <= cycle:
            answered = self._data.popleft()[1]
        window = self._opened
        chosen = _first_ready(window, cycle)
        if chosen is None:
            self._turn()
            window = self._writes if self._writing else self._reads
            chosen = _first_ready(window, cycle)
        # A row that was opened for a request is not closed before it.
        if chosen is not None and not (chosen.command == PRECHARGE and chosen.bank.opening):
            self._issue(chosen, window, cycle)
        return answered

    def _turn(self) -> None:
        """Turn to writing, or back."""
        writes = len(self._writes)
        if not self._writing:
            self._writing = writes >= self._description.write_high_requests or not self._reads
        elif writes < self._description.write_low_requests and self._reads:
            self._writing = False

    def _issue(self, chosen: _Waiting, window: list[_Waiting], cycle: int) -> None:
        """Issue the next command of a request."""
        bank, command = chosen.bank, chosen.command
        for level in bank.levels:
            level.issue(command, cycle)
        if command == PRECHARGE:
            bank.row = None
            return
        window.remove(chosen)
        if command == ACTIVATE:
            bank.row = chosen.row
            bank.opening = True
            bisect.insort(self._opened, chosen, key=lambda each: each.since_cycle)
            self._limit_activations(bank, cycle)
            return
        if window is self._opened:
            bank.opening = False
        if command == READ:
            made_of = self._description
            self._data.append((cycle + made_of.cl_cycles + made_of.burst_cycles, chosen.request))

    def _limit_activations(self, bank: _Bank, cycle: int) -> None:
        """Let the fourth activation from the latest one on wait."""
        pseudo_channel = bank.levels[2]
        bank.activated.append(cycle)
        if len(bank.activated) == 4:
            first_cycle = bank.activated.popleft()
            ready = pseudo_channel.ready
            ready[ACTIVATE] = max(ready[ACTIVATE], first_cycle + self._description.faw_cycles)


def _first_ready(window: list[_Waiting], cycle: int) -> _Waiting | None:
    """Return the oldest request, the first one, whose next command can go in ``cycle``."""
    for waiting in window:
        bank = waiting.bank
        if bank.row is None:
            command = ACTIVATE
        elif bank.row != waiting.row:
            command = PRECHARGE
        else:
            command = WRITE if waiting.request.write else READ
        if all(level.ready[command] <= cycle for level in bank.levels):
            waiting.command = command
            return waiting
    return None


def _banks_of(made_of: ArbitratedBanksDescription) -> list[_Bank]:
    """Return the banks of a channel, by pseudo channel, bank group and bank."""
    written = made_of.cwl_cycles + made_of.burst_cycles
    turned = made_of.cl_cycles + made_of.burst_cycles + 2 - made_of.cwl_cycles
    of_channel = {ACTIVATE: [(ACTIVATE, 2), (PRECHARGE, 2)]}
    of_pseudo_channel = {
        ACTIVATE: [(ACTIVATE, made_of.rrd_s_cycles)],
        READ: [(READ, made_of.burst_cycles), (WRITE, turned)],
        WRITE: [(WRITE, made_of.burst_cycles), (READ, written + made_of.wtr_s_cycles)],
    }
    of_group = {
        ACTIVATE: [(ACTIVATE, made_of.rrd_l_cycles)],
        READ: [(READ, made_of.ccd_l_cycles)],
        WRITE: [(WRITE, made_of.ccd_l_cycles), (READ, written + made_of.wtr_l_cycles)],
    }
    of_bank = {
        ACTIVATE: [
            (ACTIVATE, made_of.rc_cycles),
            (READ, made_of.rcd_read_cycles),
            (WRITE, made_of.rcd_write_cycles),
            (PRECHARGE, made_of.ras_cycles),
        ],
        PRECHARGE: [(ACTIVATE, made_of.rp_cycles)],
        READ: [(PRECHARGE, made_of.rtp_cycles)],
        WRITE: [(PRECHARGE, written + made_of.wr_cycles)],
    }
    channel = _Level(of_channel)
    banks = []
    for _ in range(made_of.pseudo_channels):
        pseudo_channel = _Level(of_pseudo_channel)
        activated: deque[int] = deque()
        for _ in range(made_of.bank_groups):
            group = _Level(of_group)
            above = (group, pseudo_channel, channel)
            banks += [_Bank(of_bank, above, activated) for _ in range(made_of.banks)]
    return banks

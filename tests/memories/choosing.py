"""An independent model of the banked memory that looks at every request in every cycle.

It computes the commands of each channel, the answers and the counters without the packed words of
the compiled memory. Locations of addresses are tested in ``test_mapping``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import BankedDescription
from tests.memories.commands import Command, Location, What, locations
from tests.memories.random_memories import Script

# Uses of a bus cycle. The first one that applies counts; a cycle without any is idle.
FATES: Final = ("data", "refresh", "turnaround", "window", "conflict")

_NEVER: Final = -(1 << 40)

Kind: TypeAlias = bool


@dataclass(eq=False)
class _Client:
    todo: deque[tuple[int, Burst]]
    next_cycle: int = 0
    left: deque[tuple[Location, Kind]] = field(default_factory=deque)
    open: int = 0
    ready: int = 0
    answered: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0] * 6)


@dataclass(eq=False)
class _Request:
    client: _Client
    where: Location
    write: Kind
    arrived: int
    left: int
    admitted: int = 0
    age: int = 0
    started: int | None = None
    met: int = 0
    active: bool = False

    @property
    def order(self) -> tuple[bool, int]:
        return not self.active, self.age


@dataclass(eq=False)
class _Bank:
    row: int | None = None
    opened: int = _NEVER
    activate_from: int = 0
    held: int = 0


class Channel:
    def __init__(self, hbm: BankedDescription, number: int) -> None:
        self._hbm: Final = hbm
        self._timing: Final = hbm.dram
        self._bursts: Final = hbm.request_bytes // hbm.dram.burst_bytes
        self._number: Final = number
        self._banks: Final = defaultdict[tuple[int, int, int], _Bank](_Bank)
        self._queues: Final[tuple[deque[_Request], ...]] = (deque(), deque())
        self._window: Final[list[_Request]] = []
        self._used: Final = [0, 0]
        self._freed: Final = [0, 0]
        self._ages = 0
        self._writing = False
        self._turned = self._rows_from = self._columns_from = 0
        self._due = hbm.dram.refi_cycles if hbm.refreshes else 1 << 60
        self._columns: Final = defaultdict[tuple[int, Kind], dict[int, int]](dict)
        self._opened: Final = defaultdict[int, dict[int, int]](dict)
        self._latest: Final = defaultdict[int, deque[int]](lambda: deque(maxlen=4))
        self._pending: Final[list[tuple[range, list[Command]]]] = []
        self.log: Final[list[Command]] = []
        self.served: Final = [0, 0]
        self.met: Final = [0, 0, 0]
        pseudos = range(hbm.dram.pseudo_channels)
        self.fates: Final = [{each: set[int]() for each in FATES} for _ in pseudos]

    @property
    def rests(self) -> bool:
        return not (self._window or any(self._queues))

    def bus_uses(self, end: int) -> NDArray[np.int64]:
        counts = np.zeros((end, len(FATES) + 1), np.int64)
        for fates in self.fates:
            of_bus = np.full(end, len(FATES))
            for number, fate in reversed([*enumerate(FATES)]):
                of_bus[[cycle for cycle in fates[fate] if cycle < end]] = number
            counts[np.arange(end), of_bus] += 1
        return counts

    def take(self, request: _Request) -> None:
        self._queues[request.write].append(request)

    def step(self, cycle: int) -> None:
        while True:
            drains = cycle >= self._due
            if drains and not any(each.active for each in self._window):
                self._refresh()
                continue
            turns = self._eligible(drains=drains)
            able = [each for each in turns if self._from(each, drains=drains) <= cycle]
            if not able:
                break
            self._go(min(able, key=lambda each: each.order), cycle)
        while (kind := self._comes(cycle)) is not None:
            self._admit(kind, cycle)

    def _eligible(self, *, drains: bool) -> Iterable[_Request]:
        writing = self._writing
        inside = [each for each in self._window if each.active or not drains]
        if self._hbm.scheduler == "first ready":
            return [each for each in inside if each.active or each.write == writing]
        eligible = []
        for write in (False, True):
            of_kind = [each for each in inside if each.write == write]
            if not drains and write != writing:
                of_kind = [each for each in of_kind if each.active]
            eligible += sorted(of_kind, key=lambda each: each.order)[:1]
        return eligible

    def _from(self, request: _Request, *, drains: bool) -> int:
        timing, bank = self._timing, self._bank(request)
        first = request.admitted + 1
        # A request whose row is open continues in its own turn and after it.
        goes_on = request.active and (request.write != self._writing or drains)
        if not goes_on or self._hbm.scheduler == "first come":
            first = max(first, self._turned)
        if bank.row == request.where.row:
            opened = timing.rcd_write_cycles if request.write else timing.rcd_read_cycles
            free = self._column_free(request.where, write=request.write)
            return max(first, bank.opened + max(1, opened), self._columns_from, free)
        first = max(first, self._rows_from)
        if bank.row is None:
            return max(first, bank.activate_from, self._activation_free(request.where))
        blocked = any(each.active and self._bank(each) is bank for each in self._window)
        return 1 << 50 if blocked else max(first, bank.held)

    def _column_free(self, where: Location, *, write: Kind) -> int:
        timing, free = self._timing, 0
        for group, cycle in self._columns[where.pseudo_channel, write].items():
            apart = timing.ccd_l_cycles if group == where.bank_group else timing.ccd_s_cycles
            free = max(free, cycle + max(apart, timing.burst_cycles))
        for group, cycle in self._columns[where.pseudo_channel, not write].items():
            if write:
                turned = timing.cl_cycles + timing.burst_cycles + 2 - timing.cwl_cycles
            else:
                same = group == where.bank_group
                turned = timing.wtr_l_cycles if same else timing.wtr_s_cycles
                turned += timing.cwl_cycles + timing.burst_cycles
            free = max(free, cycle + turned)
        return free

    def _activation_free(self, where: Location) -> int:
        timing, free = self._timing, 0
        for group, cycle in self._opened[where.pseudo_channel].items():
            apart = timing.rrd_l_cycles if group == where.bank_group else timing.rrd_s_cycles
            free = max(free, cycle + apart)
        latest = self._latest[where.pseudo_channel]
        return max(free, latest[0] + timing.faw_cycles) if len(latest) == 4 else free

    def _go(self, request: _Request, cycle: int) -> None:
        bank, where = self._bank(request), request.where
        request.started = cycle if request.started is None else request.started
        if bank.row == where.row:
            self._column(request, bank, cycle)
        elif bank.row is None:
            request.met = max(request.met, 1)
            request.active = True
            bank.row, bank.opened = where.row, cycle + 1
            bank.held = cycle + 1 + self._timing.ras_cycles
            bank.activate_from = cycle + self._timing.rc_cycles
            self._opened[where.pseudo_channel][where.bank_group] = cycle
            self._latest[where.pseudo_channel].append(cycle)
            self._rows_from = cycle + 2
            self._note("activate", cycle + 1, where, where.row)
            self._release(request.write, cycle + 1)
        else:
            request.met = 2
            self._note("precharge", cycle, where, bank.row)
            bank.row = None
            bank.activate_from = max(bank.activate_from, cycle + max(1, self._timing.rp_cycles))
            self._rows_from = cycle + 1

    def _column(self, request: _Request, bank: _Bank, cycle: int) -> None:
        timing, where = self._timing, request.where
        kind = request.write
        self._note("write" if kind else "read", cycle, where, where.row)
        self.fates[where.pseudo_channel]["data"].update(range(cycle, cycle + timing.burst_cycles))
        self._columns[where.pseudo_channel, kind][where.bank_group] = cycle
        self._columns_from = cycle + 1
        written = timing.cwl_cycles + timing.burst_cycles + timing.wr_cycles
        bank.held = max(bank.held, cycle + (written if kind else max(1, timing.rtp_cycles)))
        was_active, request.active = request.active, False
        if not was_active:
            self._release(kind, cycle)
        request.left -= 1
        if request.left:
            return
        self._window.remove(request)
        waited = range(request.admitted + 1, cycle)
        for fates in self.fates:
            fates["conflict"].update(waited)
        ready = cycle if kind else cycle + timing.cl_cycles + timing.burst_cycles
        assert request.started is not None
        self.served[kind] += 1
        self.met[request.met] += 1
        client = request.client
        client.counts[request.met] += 1
        client.counts[3] += request.admitted - request.arrived
        client.counts[4] += request.started - request.admitted
        client.counts[5] += ready - request.started
        client.ready = max(client.ready, ready)
        client.open -= 1

    def _comes(self, cycle: int) -> Kind | None:
        entries = self._hbm.read_window_bursts, self._hbm.write_window_bursts
        for kind in (False, True):
            inside = sum(each.write == kind for each in self._window)
            slots = entries[kind] * (2 if self._bursts == 1 else 1)
            if (
                self._queues[kind]
                and self._queues[kind][0].arrived <= cycle
                and self._freed[kind] <= cycle
                and self._used[kind] < entries[kind]
                and inside < slots
            ):
                return kind
        return None

    def _admit(self, kind: Kind, cycle: int) -> None:
        request = self._queues[kind].popleft()
        request.admitted, request.age = cycle, self._ages
        self._ages += 1
        self._note_refreshes()
        for fates in self.fates:
            fates["window"].update(range(request.arrived + 1, cycle + 1))
        self._window.append(request)
        self._used[kind] += self._bursts
        self._turn(cycle + 1)

    def _release(self, kind: Kind, cycle: int) -> None:
        self._used[kind] -= 1
        self._freed[kind] = cycle
        self._turn(cycle + 1)

    def _turn(self, cycle: int) -> None:
        reads, writes = self._used
        entries = self._hbm.write_window_bursts
        if self._writing:
            writing = 100 * writes >= self._hbm.write_low_percent * entries
        else:
            # Bursts are whole: more than x means at least floor(x) + 1.
            writing = writes > self._hbm.write_high_percent * entries // 100
        writing = writes > 0 and (reads == 0 or writing)
        if writing == self._writing:
            return
        self._writing, self._turned = writing, cycle
        for number, fates in enumerate(self.fates):
            last = max(self._columns[number, not writing].values(), default=_NEVER)
            first = max(cycle, last + self._timing.burst_cycles)
            free = self._column_free(Location(0, number, 0, 0, 0), write=writing)
            fates["turnaround"].update(range(first, free))

    def _refresh(self) -> None:
        due, timing = self._due, self._timing
        held = [bank.held for bank in self._banks.values() if bank.row is not None]
        closed = max(due, self._rows_from, *held)
        begin = closed + max(1, timing.rp_cycles)
        end = self._rows_from = begin + timing.rfc_cycles
        log = [
            Command(closed, self._number, "precharge all"),
            Command(begin, self._number, "refresh"),
        ]
        self._pending.append((range(due, end), log))
        every = self._hbm.dram
        for pseudo in range(every.pseudo_channels):
            for group in range(every.bank_groups):
                for number in range(every.banks):
                    bank = self._banks[pseudo, group, number]
                    bank.row, bank.activate_from = None, end
        self._due = due + timing.refi_cycles
        if not self.rests:
            self._note_refreshes()

    def _note_refreshes(self) -> None:
        for refreshed, log in self._pending:
            self.log.extend(log)
            for fates in self.fates:
                fates["refresh"].update(refreshed)
        self._pending.clear()

    def _bank(self, request: _Request) -> _Bank:
        where = request.where
        return self._banks[where.pseudo_channel, where.bank_group, where.bank]

    def _note(self, what: What, cycle: int, where: Location, row: int) -> None:
        place = where.pseudo_channel, where.bank_group, where.bank
        self.log.append(Command(cycle, self._number, what, *place, row))


@dataclass(frozen=True)
class Served:
    channels: list[Channel]
    counts: list[list[int]]
    answered: list[list[int]]


def _addresses(hbm: BankedDescription, burst: Burst) -> Iterable[int]:
    for row in range(burst.rows):
        first = (burst.address + row * burst.pitch_bytes) // hbm.request_bytes
        for number in range(first, first - -burst.row_bytes // hbm.request_bytes):
            yield number * hbm.request_bytes


def _hand_over(
    client: _Client, cycle: int, hbm: BankedDescription, channels: list[Channel]
) -> None:
    if not client.left or client.next_cycle > cycle:
        return
    client.next_cycle = cycle + 1
    bursts = hbm.request_bytes // hbm.dram.burst_bytes
    for _ in range(min(hbm.requests_per_bundle, len(client.left))):
        where, write = client.left.popleft()
        channels[where.channel].take(_Request(client, where, write, cycle + 1, bursts))


def serve(hbm: BankedDescription, script: Script) -> Served:
    channels = [Channel(hbm, number) for number in range(hbm.channels)]
    clients = [_Client(deque((each.gap_cycles, each.burst) for each in queue)) for queue in script]
    cycle = 0

    def submit(client: _Client, now: int) -> None:
        if client.todo:
            gap, burst = client.todo.popleft()
            client.next_cycle, client.ready = now + gap + 1, 0
            places = locations(hbm, _addresses(hbm, burst))
            client.left.extend((where, burst.write) for where in places)
            client.open = len(client.left)

    for client in clients:
        submit(client, 0)
    while any(client.open for client in clients):
        rests = all(channel.rests for channel in channels)
        cycle = min(each.next_cycle for each in clients if each.left) if rests else cycle + 1
        for channel in channels:
            channel.step(cycle)
        for client in (*clients[::2], *clients[1::2]):
            _hand_over(client, cycle, hbm, channels)
        for number, client in enumerate(clients):
            if client.open == 0 and len(client.answered) + len(client.todo) < len(script[number]):
                client.answered.append(client.ready + 1)
                submit(client, client.ready + 1)
    return Served(
        channels,
        [client.counts for client in clients],
        [client.answered for client in clients],
    )

"""Reasons for a slow HBM, from its counters and the units that waited for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.messages.causes import BusUse, Cause
from fabric.timing.engine.off_chip import ClientTraffic, MemoryCounters
from fabric.timing.state.resource_use import bus_shares, row_outcomes, uneven_channels

_MUCH: Final = {
    BusUse.WINDOW: 10.0,
    BusUse.CONFLICT: 10.0,
    BusUse.TURNAROUND: 5.0,
    BusUse.REFRESH: 5.0,
    BusUse.IDLE: 50.0,
}
"""The smallest percentages of the buses' cycles that are reported."""

_LOST: Final = {BusUse.WINDOW, BusUse.CONFLICT}

_MANY_CONFLICTS: Final = 20


@dataclass(frozen=True)
class SlowedUnit:
    """Requests of a unit that waited for the HBM; fractional cycles are averages per request."""

    name: str
    hbm_cycles: int
    requests: int
    queued_cycles: float  # outside of a full window
    waiting_cycles: float  # in the window, up to the first command
    serving_cycles: float  # from the first command to the end
    conflict_percent: float  # of requests that found another row open in their bank


@dataclass(frozen=True)
class SlowMemory:
    """Reasons for a slow HBM; the counters cover the whole run."""

    counters: MemoryCounters = field(repr=False)
    units: tuple[SlowedUnit, ...] = field(repr=False)
    findings: tuple[str, ...]

    def sheet(self, shown: int) -> Sheet:
        rows = []
        for unit in self.units:
            cycles = (unit.queued_cycles, unit.waiting_cycles, unit.serving_cycles)
            means = (f"{mean:,.1f}" for mean in (*cycles, unit.conflict_percent))
            rows.append((unit.name, unit.hbm_cycles, unit.requests, *means))
        note = ", cycles of a request on average: outside of the window, in it, and being served"
        yield Title("Why the HBM was slow", note)
        titles = ("unit", Cause.HBM.label, "requests", "outside", "in it", "served", "conflicts, %")
        yield Rows(titles, rows, shown)
        for sentence in self.findings:
            yield line(sentence)


def slow_memory_of(counters: MemoryCounters | None, accounts: Accounts) -> SlowMemory | None:
    """Return the reasons for a slow HBM; None without waits for it or without counters."""
    if counters is None:
        return None
    waited = {unit.number: unit.hbm_cycles for unit in accounts.units if unit.hbm_cycles}
    units = [
        _slowed(accounts.names.units[client.unit], waited[client.unit], client)
        for client in counters.clients
        if client.unit in waited and client.requests
    ]
    if not units:
        return None
    units.sort(key=lambda unit: (-unit.hbm_cycles, unit.name))
    return SlowMemory(counters, tuple(units), tuple(_findings(counters)))


def _slowed(name: str, hbm_cycles: int, client: ClientTraffic) -> SlowedUnit:
    cycles = (client.queued_cycles, client.waiting_cycles, client.serving_cycles)
    means = (total / client.requests for total in (*cycles, 100 * client.row_conflicts))
    return SlowedUnit(name, hbm_cycles, client.requests, *means)


def _findings(counters: MemoryCounters) -> Iterator[str]:
    shares = dict(bus_shares(counters.bus))
    if not shares:
        return
    spent = ", ".join(f"{use.label} {share:.1f} %" for use, share in shares.items())
    yield f"Cycles of its buses: {spent}."
    yield f"Of its requests: {row_outcomes(counters)}."
    much = {use for use, least in _MUCH.items() if shares.get(use, 0) >= least}
    conflicts = sum(channel.row_conflicts for channel in counters.channels)
    # If most requests wait for rows, a larger window would only hold more such requests.
    if BusUse.WINDOW in much and shares[BusUse.WINDOW] > shares.get(BusUse.CONFLICT, 0):
        yield (
            "Window full: no request in it was ready, and the memory could not choose among those "
            "outside. Fewer concurrent streams or a larger window leave fewer requests outside."
        )
    if BusUse.CONFLICT in much:
        yield (
            "Rows and commands: all waiting requests were in the window. A larger window would "
            "not help."
        )
    if 100 * conflicts >= _MANY_CONFLICTS * counters.requests > 0 and _LOST & much:
        yield (
            "Row conflicts: where tensors lie ([placement]) and how addresses are mapped decide "
            "which streams share a bank."
        )
    uneven = uneven_channels(counters)
    if uneven is not None:
        yield (
            f"Channels: {uneven}. Where tensors lie ([placement]) and how addresses are "
            "mapped decide that."
        )
    if BusUse.TURNAROUND in much:
        yield "Turnaround: longer runs of reads and of writes take fewer turns."
    if BusUse.REFRESH in much:
        yield "Refresh: rows are refreshed whatever the program does."
    if BusUse.IDLE in much:
        yield "Idle: no request waited in these cycles, so bandwidth was not the limit."

"""Why the HBM was slow for the units that waited for it, where its model counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fabric.state.resource_use import bus_shares, row_outcomes, uneven_channels
from fabric.telling.causes import BusUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.engine.off_chip import ClientTraffic, MemoryCounters
    from fabric.trace.analysis.stalls import Accounts

__all__ = ["SlowMemory", "SlowedUnit", "slow_memory_of"]

_MUCH: Final = {
    BusUse.WINDOW: 10.0,
    BusUse.CONFLICT: 10.0,
    BusUse.TURNAROUND: 5.0,
    BusUse.REFRESH: 5.0,
    BusUse.IDLE: 50.0,
}
"""Percent of the buses' cycles that are worth a sentence about what decides them."""

_NEVER: Final = 101.0
_LOST: Final = {BusUse.WINDOW, BusUse.CONFLICT}
"""What row conflicts add to."""

_MANY_CONFLICTS: Final = 20
"""Percent of all requests."""


@dataclass(frozen=True)
class SlowedUnit:
    """What the requests of a unit met that waited for the HBM.

    Attributes:
        name: of the unit.
        hbm_cycles: that it waited.
        requests: that were served for it.
        queued_cycles: a request waited outside of a full window, on average.
        waiting_cycles: in the window, for its first command.
        serving_cycles: from there to its end.
        conflict_percent: of the requests found another row open in their bank.
    """

    name: str
    hbm_cycles: int
    requests: int
    queued_cycles: float
    waiting_cycles: float
    serving_cycles: float
    conflict_percent: float


@dataclass(frozen=True)
class SlowMemory:
    """Why the HBM was slow; the counters are those of the whole run.

    Attributes:
        counters: of its model.
        units: those that waited for it, the longest first.
        findings: sentences: where its bandwidth went, and where that is much, what decides it.
    """

    counters: MemoryCounters = field(repr=False)
    units: tuple[SlowedUnit, ...] = field(repr=False)
    findings: tuple[str, ...]


def slow_memory_of(counters: MemoryCounters | None, accounts: Accounts) -> SlowMemory | None:
    """Return why the HBM was slow; None where nobody waited for it, or its model counts nothing."""
    if counters is None:
        return None
    waited = {each.unit: each.hbm for each in accounts.units if each.hbm}
    units = [
        _slowed(accounts.names.units[each.unit], waited[each.unit], each)
        for each in counters.clients
        if each.unit in waited and each.requests
    ]
    if not units:
        return None
    units.sort(key=lambda each: (-each.hbm_cycles, each.name))
    return SlowMemory(counters, tuple(units), tuple(_findings(counters)))


def _slowed(name: str, hbm_cycles: int, client: ClientTraffic) -> SlowedUnit:
    requests = client.requests
    return SlowedUnit(
        name,
        hbm_cycles,
        requests,
        client.queued_cycles / requests,
        client.waiting_cycles / requests,
        client.serving_cycles / requests,
        100 * client.row_conflicts / requests,
    )


def _findings(counters: MemoryCounters) -> Iterator[str]:
    shares = dict(bus_shares(counters.bus))
    if not shares:
        return
    spent = ", ".join(f"{use.label} {share:.1f} %" for use, share in shares.items())
    yield f"Cycles of its buses: {spent}."
    yield f"Of its requests: {row_outcomes(counters)}."
    much = {use for use, share in shares.items() if share >= _MUCH.get(use, _NEVER)}
    conflicts = sum(each.row_conflicts for each in counters.channels)
    # Where most wait for rows, more of them would be seen to wait for rows.
    if BusUse.WINDOW in much and shares[BusUse.WINDOW] > shares.get(BusUse.CONFLICT, 0):
        yield (
            "Window full: nothing in it could go, and requests waited outside, unseen. Fewer "
            "streams at once or a larger window leave fewer of them outside."
        )
    if BusUse.CONFLICT in much:
        yield (
            "Rows and commands: all that waited was in the window, which need not be larger for "
            "that."
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
        yield "Idle: no request waited then, so that bandwidth was not what was short."

"""Sentences about the HBM's traffic: bytes moved, bytes read again, and a slow end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate, takewhile
from statistics import median
from typing import Final

from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.analysis.other_memory import memory_of, port_bytes, rate_text
from fabric.analysis.trace.analysis.timeline import bandwidth
from fabric.analysis.trace.reading.names import percent
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.text import counted

_NAMED: Final = 3
"""The most families or units that a sentence names."""

_STRETCHES: Final = 200
_SHORTEST: Final = 4
"""The fewest stretches of a slow end: 2 % of the run, or at most 1 % at the median rate."""

_BODY: Final = 0.25
"""The least share of the HBM's peak that is used before a slow end."""

_MOSTLY: Final = 0.9
"""The least share of a slow end's bytes that the named units move together."""

_SERVED: Final = """
SELECT name, sum(bytes * (end_cycle - greatest(submitted_cycle, $at))
    // greatest(end_cycle - submitted_cycle, 1))::BIGINT AS moved
FROM bursts JOIN units USING (unit) WHERE end_cycle > $at GROUP BY name ORDER BY moved DESC, name
"""
"""The bytes of each unit after a cycle; a burst's bytes are spread evenly over its time."""


def traffic_of(trace: RecordedRun, accounts: Accounts) -> tuple[str, ...]:
    """Return the sentences; none for a run that did not complete, or was traced in part."""
    moved = accounts.moved_bytes
    if not moved.total() or accounts.status != "completed" or trace.is_partial:
        return ()
    peak = trace.head.off_chip.peak_bytes_per_cycle
    used = percent(moved.total(), round(peak * accounts.cycles))
    sentence = f"{moved.total():,} bytes moved by the HBM, {used} % of {rate_text(peak)} a cycle"
    return tuple(filter(None, (sentence + _repeats(trace, accounts), _end(trace, accounts, peak))))


def _repeats(trace: RecordedRun, accounts: Accounts) -> str:
    names, moved = accounts.names, accounts.moved_bytes
    again, readers = Counter[int](), Counter[int]()
    for once_bytes, units in trace.head.off_chip.tensors:
        more_bytes = sum(moved[unit] for unit in units) - once_bytes
        if more_bytes > 0:
            again[names.first[units[0]]] += more_bytes
            readers[names.first[units[0]]] += len(units)
    if not again:
        return "."
    families = [
        f"{names.family[unit].title} {count:,}"
        + (f" ({counted(readers[unit], 'unit')})" if readers[unit] > 1 else "")
        for unit, count in again.most_common(_NAMED)
    ]
    more = [f"and {len(again) - _NAMED} more"] if len(again) > _NAMED else []
    return (
        f". {again.total():,} of them ({percent(again.total(), moved.total())} %) are read again: "
        f"{', '.join(families + more)}.{_tiles(trace.head.parameters)}"
    )


def _tiles(parameters: Mapping[str, object]) -> str:
    sizes = [
        name for name, value in parameters.items() if name.startswith("tile") and type(value) is int
    ]
    return f" Larger tiles may read them fewer times: try {' or '.join(sizes)}." if sizes else ""


def _end(trace: RecordedRun, accounts: Accounts, peak: float) -> str:
    """Return a sentence about a slow end of the run; empty without a slow end.

    The run is cut into 200 stretches. The last stretches are a slow end if the HBM moves less than
    half of the median stretch's bytes in each.
    """
    levels = bandwidth(trace, max(1, -(-accounts.cycles // _STRETCHES)))
    usual = median(level.value for level in levels)
    count = sum(1 for _ in takewhile(lambda level: 2 * level.value < usual, reversed(levels)))
    first, last = trace.window
    at = levels[-count].cycle if count else last
    before, after = at - first, last - at
    body = sum(level.value for level in levels[:-count]) / (before or 1)
    if count < _SHORTEST or body < _BODY * peak:
        return ""
    rows = trace.rows(_SERVED, at=at)
    least = _MOSTLY * sum(moved for _, moved in rows)
    moved_before = accumulate((moved for _, moved in rows), initial=0)
    units = [name for (name, _), moved in zip(rows, moved_before, strict=False) if moved < least]
    named = ", ".join(units[:_NAMED]) + (", ..." if len(units) > _NAMED else "")
    ports = f" through ports of {port:,}" if (port := port_bytes(memory_of(trace))) else ""
    rate = sum(level.value for level in levels[-count:]) / after
    return (
        f"The last {counted(after, 'cycle')} ({percent(after, accounts.cycles)} %) move "
        f"{rate:,.0f} bytes a cycle for {counted(len(units), 'unit')} ({named}){ports}; the cycles "
        f"before move {body:,.0f} bytes a cycle."
    )

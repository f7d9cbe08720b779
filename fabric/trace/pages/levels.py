"""The coarse levels of a page: states of units, the HBM and channels in stretches of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.telling.causes import SHOWN, WAITS, Cause
from fabric.telling.wording import counted
from fabric.trace.analysis.slices import Level, bandwidth, occupancy

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject
    from fabric.trace.analysis.timeline import Timelines
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["edges", "memory", "most_held", "states"]

_CELLS: Final = 700_000
_FEWEST, _MOST = 64, 4_096
_HBM_STRETCHES: Final = 2_000


def edges(first: int, last: int, rows: int) -> np.ndarray:
    """Return where stretches begin and end: as many as leave a page of ``rows`` small."""
    wanted = max(_FEWEST, min(_MOST, _CELLS // max(1, rows)))
    cycles = last - first
    bins = max(1, min(wanted, cycles))
    return first + np.arange(bins + 1, dtype=np.int64) * cycles // bins


def states(trace: RecordedRun, lines: Timelines, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what each unit mostly did in each stretch, and what all of them did.

    Returns:
        Places in ``SHOWN``, of shape (units, stretches); percent of the cycles of all traced units
        by cause, of shape (causes, stretches).
    """
    units, bins = len(lines.names), len(at) - 1
    span = int(at[-1]) + 1
    found = trace.numpy(
        "SELECT unit, start_cycle AS start, end_cycle AS until, cause FROM waits "
        "WHERE end_cycle > start_cycle ORDER BY unit, start_cycle"
    )
    # One long axis, a unit after the other: where each stretch of each unit begins and ends.
    axis = np.arange(units, dtype=np.int64)[:, None] * span + at
    cycles = np.zeros((len(SHOWN), units, bins), np.int64)
    for cause in WAITS:
        rows = found["cause"] == str(cause)
        base = found["unit"][rows].astype(np.int64) * span
        start, until = (
            base + np.clip(found[name][rows], at[0], at[-1]) for name in ("start", "until")
        )
        cycles[SHOWN.index(cause)] = np.diff(_covered(start, until, axis), axis=1)
    ends = np.array(
        [at[-1] if lines.still(unit) else min(lines.final[unit], at[-1]) for unit in range(units)],
        np.int64,
    )[:, None]
    alive = np.diff(np.minimum(at, np.maximum(ends, at[0])), axis=1)
    cycles[SHOWN.index(Cause.BUSY)] = alive - cycles.sum(0)
    cycles[SHOWN.index(Cause.IDLE)] = np.diff(at) - alive
    together = cycles[:, np.array(lines.traced, np.bool_)].sum(1)
    shares = 100 * together / np.maximum(together.sum(0), 1)
    return cycles.argmax(0).astype(np.uint8), shares


def _covered(start: np.ndarray, until: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return how much of the axis up to each of its points lies within the intervals."""
    if not len(start):
        return np.zeros_like(axis)
    before = np.concatenate([[0], np.cumsum(until - start)])
    number = np.searchsorted(start, axis, side="right") - 1
    inside = np.minimum(axis, until[number]) - start[number]
    return np.where(number < 0, 0, before[number] + np.where(number < 0, 0, inside))


def memory(trace: RecordedRun, cycles: int) -> JsonObject | None:
    """Return the bytes a cycle that the HBM moved in each stretch; None where it moved none.

    Args:
        trace: of the run.
        cycles: of the run.
    """
    if not trace.rows("SELECT 1 FROM bursts LIMIT 1") or not cycles:
        return None
    _, last = trace.window
    width = max(1, -(-cycles // _HBM_STRETCHES))
    levels = bandwidth(trace, width)
    at = [*(level.cycle for level in levels), last]
    moved = [level.value for level in levels]
    rates = np.round(np.array(moved) / np.diff(at), 2)
    peak: float = trace.meta["off_chip"]["peak_bytes_per_cycle"]
    stretches = f"stretches of {counted(width, 'cycle')}" if width > 1 else "single cycles"
    note = f"In {stretches}; each burst is spread evenly over its time"
    if rates.max() <= peak:
        note += ", but never above the peak."
    else:
        note += "; the memory moved more than its description calls its peak."
    return {
        "state": SHOWN.index(Cause.HBM),
        "edges": at,
        "rates": rates.tolist(),
        "moved": moved,
        "peak": peak,
        "mean": sum(moved) / cycles,
        "note": note,
    }


def most_held(trace: RecordedRun, channels: Sequence[int], at: np.ndarray) -> list[JsonObject]:
    """Return the most elements that each channel held in each stretch."""
    if not channels:
        return []
    levels = dict(occupancy(trace, channels))
    return [{"channel": each, "most": _tops(levels.get(each, []), at)} for each in channels]


def _tops(levels: list[Level], at: np.ndarray) -> list[int]:
    """Return the highest of the levels in each stretch; each holds until the next."""
    if not levels:
        return [0] * (len(at) - 1)
    cycles, values = np.array(levels, np.int64).T
    number = np.searchsorted(cycles, at[:-1], side="right") - 1
    tops = np.where(number < 0, 0, values[number])
    places = np.clip(np.searchsorted(at, cycles, side="right") - 1, 0, len(tops) - 1)
    np.maximum.at(tops, places, values)
    found: list[int] = tops.tolist()
    return found

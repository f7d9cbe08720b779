"""The numbers of a page: its figures, and its levels from stretches of a run to single waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, TypeVar

import numpy as np

from fabric.analysis.drawing.paper import on_dark
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.analysis.critical import path_note, phases, ranked
from fabric.analysis.trace.analysis.roots import Root
from fabric.analysis.trace.analysis.slow_memory import slow_memory_of
from fabric.analysis.trace.analysis.stalls import stages_of
from fabric.analysis.trace.analysis.timeline import Level, Timelines, bandwidth, occupancy
from fabric.analysis.trace.analysis.traffic import traffic_of
from fabric.analysis.trace.analysis.what_if import large_gains
from fabric.analysis.trace.pages.parts import Columns, compressed
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.causes import MEMORIES, SHOWN, WAITS, BusUse, Cause
from fabric.messages.place import Place
from fabric.messages.text import JsonObject, counted, visible
from fabric.timing.engine.off_chip import BusCycles, ChannelTraffic
from fabric.timing.state.resource_use import row_outcomes

_CELLS: Final = 700_000

_FEWEST, _MOST = 64, 4_096

_HBM_STRETCHES: Final = 2_000

_MARGIN: Final = 0.95

_PORTS: Final = """
SELECT unit, channel, side,
    row_number() OVER (PARTITION BY unit ORDER BY side, channel) - 1 AS port,
    count(*) OVER (PARTITION BY unit) AS ports
FROM (
    SELECT consumer AS unit, channel, false AS side FROM channels
    UNION ALL SELECT producer, channel, true FROM channels
)
"""

_WAITS: Final = f"""
WITH ports AS ({_PORTS}), counted AS (SELECT unit, max(ports) AS ports FROM ports GROUP BY unit),
seen AS (
    SELECT * EXCLUDE (start_cycle, end_cycle), greatest(start_cycle, $first) AS since,
        least(end_cycle, $last) AS until
    FROM waits
)
SELECT s.unit, since - coalesce(lag(until) OVER its, $origin) AS gap, until - since AS cycles,
    until - least(greatest(until_cycle, since), until) AS way,
    coalesce(port, coalesce(counted.ports, 0)
        + list_position({[str(cause) for cause in WAITS]}, cause) - 1) AS port
FROM seen s LEFT JOIN counted USING (unit)
LEFT JOIN ports p ON p.unit = s.unit AND p.channel = s.channel AND p.side = (cause = '{Cause.FULL}')
WHERE since < until OR (open AND since = until)
WINDOW its AS (PARTITION BY s.unit ORDER BY since, until, open)
ORDER BY s.unit, since, until, open
"""

_TRANSFERS: Final = """
SELECT channel, sent_cycle - coalesce(lag(sent_cycle) OVER its, $origin) AS gap,
    coalesce(taken_cycle - sent_cycle + 1, 0) AS held,
    stop * 2 + bare::BIGINT AS stop, send_wait_cycles AS send_wait,
    receive_wait_cycles AS receive_wait
FROM transfers WINDOW its AS (PARTITION BY channel ORDER BY element) ORDER BY channel, element
"""

AT_CHANNELS: Final = (str(Cause.EMPTY), str(Cause.FULL))
"""Causes of waits at a channel, which are columns of channels."""

_ROOTS: Final = 5

_STEPS: Final = 60_000

_STRETCHES: Final = 2_000

_BARS: Final = 128

Item = TypeVar("Item")


def edges(first: int, last: int, rows: int) -> np.ndarray:
    """Return the edges of the run's stretches; with more ``rows``, a page has fewer stretches."""
    wanted = max(_FEWEST, min(_MOST, _CELLS // max(1, rows)))
    cycles = last - first
    bins = max(1, min(wanted, cycles))
    return first + np.arange(bins + 1, dtype=np.int64) * cycles // bins


def states(trace: RecordedRun, lines: Timelines, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the longest state of each unit in each stretch, and the shares of all causes.

    States are indices into ``SHOWN``, of shape (units, stretches). Shares are percentages of the
    cycles of all traced units, of shape (causes, stretches).
    """
    units, bins = len(lines.names), len(at) - 1
    span = int(at[-1]) + 1
    waits = trace.numpy(
        "SELECT unit, start_cycle AS start, end_cycle AS until, cause FROM waits "
        "WHERE end_cycle > start_cycle ORDER BY unit, start_cycle"
    )
    # The edges of all units' stretches on one axis, one unit after the other.
    axis = np.arange(units, dtype=np.int64)[:, None] * span + at
    cycles = np.zeros((len(SHOWN), units, bins), np.int64)
    for cause in WAITS:
        rows = waits["cause"] == str(cause)
        base = waits["unit"][rows].astype(np.int64) * span
        start, until = (
            base + np.clip(waits[name][rows], at[0], at[-1]) for name in ("start", "until")
        )
        cycles[SHOWN.index(cause)] = np.diff(_covered(start, until, axis), axis=1)
    ends = np.array(
        [
            at[-1] if lines.open_wait(unit) else min(lines.final[unit], at[-1])
            for unit in range(units)
        ],
        np.int64,
    )[:, None]
    alive = np.diff(np.minimum(at, np.maximum(ends, at[0])), axis=1)
    cycles[SHOWN.index(Cause.BUSY)] = alive - cycles.sum(0)
    cycles[SHOWN.index(Cause.IDLE)] = np.diff(at) - alive
    together = cycles[:, np.array(lines.traced, np.bool_)].sum(1)
    shares = 100 * together / np.maximum(together.sum(0), 1)
    return cycles.argmax(0).astype(np.uint8), shares


def _covered(start: np.ndarray, until: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return the cycles of sorted waits up to each cycle of ``axis``."""
    if not len(start):
        return np.zeros_like(axis)
    before = np.concatenate([[0], np.cumsum(until - start)])
    number = np.searchsorted(start, axis, side="right") - 1
    inside = np.minimum(axis, until[number]) - start[number]
    return np.where(number < 0, 0, before[number] + np.where(number < 0, 0, inside))


def memory(trace: RecordedRun, cycles: int) -> JsonObject | None:
    """Return the bytes a cycle that the HBM moved in each stretch; None without traffic."""
    if not trace.rows("SELECT 1 FROM bursts LIMIT 1") or not cycles:
        return None
    _, last = trace.window
    width = max(1, -(-cycles // _HBM_STRETCHES))
    levels = bandwidth(trace, width)
    at = [*(level.cycle for level in levels), last]
    moved = [level.value for level in levels]
    rates = np.round(np.array(moved) / np.diff(at), 2)
    peak = trace.head.off_chip.peak_bytes_per_cycle
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
    return [{"channel": n, "most": _tops(levels.get(n, []), at)} for n in channels]


def _tops(levels: list[Level], at: np.ndarray) -> list[int]:
    if not levels:
        return [0] * (len(at) - 1)
    cycles, values = np.array(levels, np.int64).T
    number = np.searchsorted(cycles, at[:-1], side="right") - 1
    tops = np.where(number < 0, 0, values[number])
    places = np.minimum(np.searchsorted(at, cycles, side="right") - 1, len(tops) - 1)
    np.maximum.at(tops, places, values)
    most: list[int] = tops.tolist()
    return most


@dataclass(frozen=True)
class Detail:
    """The part of the finest level that a page holds.

    Attributes:
        origin: the cycle from which the columns count.
        columns: ``wait.gap``: cycles since the unit's previous wait, or since ``origin``.
            ``wait.way``: cycles at the end in which the element or the credit was in flight.
            ``wait.port``: inputs of the unit first, then outputs, then the causes of ``WAITS``.
            ``transfer.gap``: cycles since the channel's previous send, or since ``origin``.
            ``transfer.held``: cycles in the channel plus 1; 0 if not dequeued.
            ``transfer.stop``: twice the level, plus 1 for a bare stop.
            ``wait.cycles``, ``transfer.send_wait`` and ``transfer.receive_wait``: cycles.
    """

    origin: int
    columns: Columns
    waits: list[int | None]
    transfers: list[int | None]
    all_waits: int
    all_transfers: int


def detail_of(
    trace: RecordedRun, units: Sequence[int], channels: Sequence[int], characters: int
) -> Detail:
    """Return the waits and transfers of the first units and channels that fit in ``characters``.

    A unit or a channel has all its rows or none. ``units`` and ``channels``: most important first.
    """
    first, last = trace.window
    ((all_units, all_channels, origin),) = trace.rows(
        "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM channels), "
        "least($first, (SELECT min(sent_cycle) FROM transfers))",
        first=first,
    )
    waits = trace.numpy(_WAITS, first=first, last=last, origin=origin)
    transfers = trace.numpy(_TRANSFERS, origin=origin)
    of_units = np.bincount(waits["unit"], minlength=all_units)
    of_channels = np.bincount(transfers["channel"], minlength=all_channels)
    room = len(waits["unit"]) + len(transfers["channel"])
    while True:
        half = max(room // 2, room - len(transfers["channel"]))
        kept_units = _fitting(units, of_units, half)
        kept_channels = _fitting(
            channels, of_channels, room - int(of_units[sorted(kept_units)].sum())
        )
        columns = {
            **_columns("wait", waits, "unit", kept_units),
            **_columns("transfer", transfers, "channel", kept_channels),
        }
        size = compressed(columns)
        if size <= characters or not room:
            break
        rows = len(columns["wait.gap"]) + len(columns["transfer.gap"])
        room = int(rows * _MARGIN * max(characters, 0) / size)
    return Detail(
        origin,
        columns,
        _counts(of_units, kept_units),
        _counts(of_channels, kept_channels),
        len(waits["unit"]),
        len(transfers["channel"]),
    )


def _fitting(ranked: Iterable[int], counts: np.ndarray, room: int) -> set[int]:
    kept = set()
    for number in ranked:
        if counts[number] <= room:
            room -= int(counts[number])
            kept.add(number)
    return kept


def _counts(counts: np.ndarray, kept: set[int]) -> list[int | None]:
    return [int(count) if number in kept else None for number, count in enumerate(counts)]


def _columns(
    kind: str, table: dict[str, np.ndarray], owner: str, kept: set[int]
) -> dict[str, np.ndarray]:
    rows = np.isin(table[owner], sorted(kept))
    return {
        f"{kind}.{name}": values[rows].astype(np.int64)
        for name, values in table.items()
        if name != owner
    }


def figures(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    """Return all figures of ``trace`` except its graph and levels.

    Units, channels and roots are indices into their lists. ``mostly`` is a channel or ``for HBM``.
    """
    large, small = large_gains(accounts.gains or (), accounts.cycles)
    return {
        "run": _run(trace, accounts),
        "causes": [{"id": cause, **_key(cause)} for cause in SHOWN],
        "waits": [SHOWN.index(cause) for cause in WAITS],
        "units": _units(trace, accounts),
        "channels": _channels(trace),
        **_roots(accounts),
        "stages": [
            [visible(stage.name), *stage[3:], visible(Place(stage.file, stage.line).brief)]
            for stage in stages_of(trace, accounts)
        ],
        "help": [[visible(gain.change), gain.changed_cycles, gain.estimated] for gain in large],
        "help_notes": [visible(note) for note in (*traffic_of(trace, accounts), small) if note],
    }


def _key(word: Cause | BusUse) -> JsonObject:
    return {
        "label": word.label,
        "meaning": word.meaning,
        "colour": word.colour,
        "dark": on_dark(word.colour),
    }


def _run(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    meta = trace.meta
    parameters = ", ".join(f"{name}={value}" for name, value in trace.head.parameters.items())
    first, last = trace.window
    notes, ended = list(trace.problems), f"{trace.outcome} in {meta.get('mode')} mode"
    closeness = visible(trace.end.closeness)
    if trace.is_partial:
        notes.append(f"Traced: cycles {first:,} to {last:,}, units {trace.head.nodes or 'all'}.")
    return {
        "name": visible(trace.head.name),
        "program": visible(
            " ".join(str(part) for part in (meta.get("program"), parameters) if part)
        ),
        "ran": ", ".join(filter(None, (ended, closeness, counted(trace.cycles, "cycle")))),
        "failed": trace.failed,
        "verdict": accounts.verdict(),
        "notes": notes,
        "first": first,
        "last": last,
        "cycles": accounts.cycles,
        "path_note": path_note(accounts.status),
    }


def _units(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    names, lines = accounts.names, accounts.timelines
    stalls = [accounts.by_number.get(unit) for unit in range(len(names.units))]
    return {
        "name": list(map(visible, names.units)),
        "operator": names.operators,
        "place": list(map(visible, names.places)),
        "family": list(map(visible, names.folded.units)),
        "absent": [x is not None and x.number not in accounts.active for x in stalls],
        "kind": [kind for (kind,) in trace.rows("SELECT kind FROM units ORDER BY unit")],
        "end": lines.final,
        "still": [lines.open_wait(unit) is not None for unit in range(len(names.units))],
        "finished": lines.finished,
        **{cause: [x and getattr(x, cause.column) for x in stalls] for cause in SHOWN},
        "mostly": [x and (x.memory_wait or (x.mostly and x.mostly.number)) for x in stalls],
        "ranked": [unit.number for unit in accounts.ranked()],
    }


def _channels(trace: RecordedRun) -> JsonObject:
    first, last = trace.window
    columns = ("name", "producer", "consumer", "depth", *AT_CHANNELS, "elements", "family")
    rows = trace.rows(
        "SELECT name, producer, consumer, depth, coalesce(for_elements, 0)::BIGINT, "
        "coalesce(for_slots, 0)::BIGINT, coalesce(elements, 0), family "
        "FROM channels LEFT JOIN (SELECT channel, "
        f"sum(seen) FILTER (cause = '{Cause.EMPTY}') AS for_elements, "
        f"sum(seen) FILTER (cause = '{Cause.FULL}') AS for_slots FROM (SELECT channel, cause, "
        "greatest(0, least(end_cycle, $last) - greatest(start_cycle, $first)) AS seen FROM waits"
        ") GROUP BY channel) USING (channel) "
        "LEFT JOIN (SELECT channel, count(taken_cycle) FILTER (NOT bare) AS elements "
        "FROM transfers GROUP BY channel) USING (channel) ORDER BY channel",
        first=first,
        last=last,
    )
    names, *others, family = zip(*rows, strict=True) if rows else ((),) * len(columns)
    values = [list(map(visible, names)), *map(list, others), list(map(visible, family))]
    return dict(zip(columns, values, strict=True))


def steps(accounts: Accounts) -> dict[str, np.ndarray]:
    """Return columns of the critical path, ``step.cycles`` and ``step.root``; empty if too long."""
    number = {root: place for place, root in enumerate(_charged_roots(accounts))}
    merged = [
        (sum(step.end - step.start for step in steps), number[root])
        for root, steps in groupby(accounts.path, lambda step: step.root)
    ]
    rows = np.array(merged if len(merged) <= _STEPS else [], np.int64).reshape(-1, 2)
    return {"step.cycles": rows[:, 0], "step.root": rows[:, 1]}


def _charged_roots(accounts: Accounts) -> list[Root]:
    return sorted({*accounts.charged, *accounts.on_path()})


def _roots(accounts: Accounts) -> JsonObject:
    roots = _charged_roots(accounts)
    number = {root: place for place, root in enumerate(roots)}
    stalled = Counter(chain.from_iterable(accounts.by_unit.values()))

    def counted(cycles: Counter[Root], most: int | None = None) -> list[tuple[int, int]]:
        return [(number[root], count) for root, count in ranked(cycles)[:most]]

    return {
        "roots": [
            {
                "name": visible(accounts.names.root(root)),
                "family": visible(accounts.names.folded.root(root)),
                "unit": root.unit,
                "units": stalled[root],
                "state": _state(root),
            }
            for root in roots
        ],
        "charged": counted(accounts.charged),
        "charged_by_unit": {
            str(unit): counted(cycles, _ROOTS) for unit, cycles in accounts.by_unit.items()
        },
        "path": counted(accounts.on_path()),
        "phases": [
            (start, end, number[root], round(100 * share, 1))
            for start, end, root, share in phases(accounts.timelines, accounts.path)
        ],
    }


def _state(root: Root) -> int:
    if root.kind in MEMORIES:
        return SHOWN.index(Cause(root.kind))
    return SHOWN.index(Cause.BUSY if root.kind == "unit" else Cause.IDLE)


def buses(trace: RecordedRun, accounts: Accounts) -> JsonObject | None:
    """Return the uses of the buses' cycles in merged stretches; None if they were not counted."""
    counters = trace.hbm
    if counters is None or not counters.bus.total or not counters.periods:
        return None
    uses = [use for use in BusUse if getattr(counters.bus, use)]
    slow = slow_memory_of(counters, accounts)
    together = -(-len(counters.periods) // _STRETCHES)
    width = together * counters.period_cycles
    stretches = _grouped(counters.periods, together)
    last = max(trace.cycles, (len(stretches) - 1) * width + 1)
    a_bar = -(-len(counters.channels) // _BARS)
    return {
        "uses": [_key(use) for use in uses],
        "edges": [*range(0, len(stretches) * width, width), last],
        "shares": _shares(stretches, uses),
        "channels": [
            _channel(number * a_bar, channels, uses)
            for number, channels in enumerate(_grouped(counters.channels, a_bar))
        ],
        "note": f"Percent of the cycles of the HBM's data buses, in stretches of "
        f"{counted(width, 'cycle')}.",
        "findings": [row_outcomes(counters)] if slow is None else list(slow.findings),
    }


def _grouped(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def _shares(groups: Sequence[Sequence[BusCycles]], uses: Sequence[BusUse]) -> list[list[float]]:
    totals = [sum(bus.total for bus in group) for group in groups]
    return [
        [
            round(100 * sum(getattr(bus, use) for bus in group) / total, 2) if total else 0.0
            for group, total in zip(groups, totals, strict=True)
        ]
        for use in uses
    ]


def _channel(first: int, channels: Sequence[ChannelTraffic], uses: Sequence[BusUse]) -> JsonObject:
    last = first + len(channels) - 1
    shares = _shares([[channel.bus for channel in channels]], uses)
    return {
        "name": str(first) if first == last else f"{first} to {last}",
        "requests": sum(channel.requests for channel in channels),
        "rows": [
            sum(getattr(channel, name) for channel in channels)
            for name in ("row_hits", "row_misses", "row_conflicts")
        ],
        "shares": [share for (share,) in shares],
    }

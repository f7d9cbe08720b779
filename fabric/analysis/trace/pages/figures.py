"""The figures of a page: those of ``trace stalls``, of a memory that counts, and of the run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from fabric.analysis.trace.analysis.critical import phases
from fabric.analysis.trace.analysis.stalled import slow_memory_of, stages_of
from fabric.analysis.trace.analysis.what_if import by_change
from fabric.messages.telling.causes import MEMORIES, SHOWN, WAITS, BusUse, Cause
from fabric.messages.telling.place import Place
from fabric.messages.telling.wording import counted, visible
from fabric.timing.state.resource_use import row_outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.analysis.trace.analysis.roots import Root
    from fabric.analysis.trace.analysis.stalled import StageFigures
    from fabric.analysis.trace.analysis.stalls import Accounts
    from fabric.analysis.trace.reading.reader import RecordedRun
    from fabric.messages.telling.plain import JsonObject
    from fabric.timing.engine.off_chip import BusCycles, ChannelTraffic

__all__ = ["AT_CHANNELS", "buses", "figures", "steps"]

AT_CHANNELS: Final = (str(Cause.EMPTY), str(Cause.FULL))
"""What is waited for at a channel: columns of channels."""

_ROOTS: Final = 5
"""Of each unit."""

_STEPS: Final = 60_000

_STRETCHES: Final = 2_000

_BARS: Final = 128

Item = TypeVar("Item")


def figures(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    """Return all that is told of ``trace`` besides its graph and its levels.

    Units, channels and roots are named by their places in the lists; ``mostly`` is a channel.
    """
    return {
        "run": _run(trace, accounts),
        "causes": [
            {"id": cause, "colour": cause.colour, "label": cause.label, "meaning": cause.meaning}
            for cause in SHOWN
        ],
        "waits": [SHOWN.index(cause) for cause in WAITS],
        "units": _units(trace, accounts),
        "channels": _channels(trace),
        **_roots(accounts),
        "stages": [
            [
                visible(each.name),
                each.units,
                each.path_cycles,
                each.headroom_cycles,
                each.off_chip_bytes,
                each.on_chip_bytes,
                _place(each),
            ]
            for each in stages_of(trace, accounts)
        ],
        "help": [
            [visible(each.change), each.changed_cycles, each.estimated]
            for each in by_change(accounts.gains or ())
        ],
    }


def _place(stage: StageFigures) -> str:
    return visible(Place(stage.file, stage.line).brief)


def _run(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    meta = trace.meta
    given = ", ".join(f"{name}={value}" for name, value in meta.get("parameters", {}).items())
    first, last = trace.window
    notes = list(trace.problems)
    if meta.get("window") is not None or meta.get("nodes") is not None:
        notes.append(f"Traced: cycles {first:,} to {last:,}, units {meta.get('nodes') or 'all'}.")
    return {
        "name": visible(str(meta.get("name"))),
        "program": visible(" ".join(str(each) for each in (meta.get("program"), given) if each)),
        "ran": f"{trace.outcome} in {meta.get('mode')} mode, {counted(trace.cycles, 'cycle')}",
        "failed": trace.failed,
        "verdict": accounts.verdict(),
        "notes": notes,
        "first": first,
        "last": last,
        "cycles": accounts.cycles,
        "path_note": accounts.path_note,
    }


def _units(trace: RecordedRun, accounts: Accounts) -> JsonObject:
    """Return columns: a row is a unit; its figures are None where it was not traced."""
    names, lines = accounts.names, accounts.timelines
    stalls = [accounts.by_number.get(unit) for unit in range(len(names.units))]
    return {
        "name": list(map(visible, names.units)),
        "operator": names.operators,
        "place": list(map(visible, names.places)),
        "family": list(map(visible, names.folded.units)),
        "absent": [each is not None and not accounts.took_part(each) for each in stalls],
        "kind": [kind for (kind,) in trace.rows("SELECT kind FROM units ORDER BY unit")],
        "end": lines.final,
        "still": [lines.still(unit) is not None for unit in range(len(names.units))],
        "finished": lines.finished,
        **{cause: [each and getattr(each, cause) for each in stalls] for cause in map(str, SHOWN)},
        "mostly": [each.worst[0] if each and each.worst else None for each in stalls],
        "ranked": [each.unit for each in accounts.ranked()],
    }


def _channels(trace: RecordedRun) -> JsonObject:
    """Return columns: a row is a channel; ``empty`` and ``full`` are cycles waited at it."""
    first, last = trace.window
    columns = (
        "name", "producer", "consumer", "depth", "forward", *AT_CHANNELS, "elements", "family",
    )  # fmt: skip
    rows = trace.rows(
        "WITH waited AS (SELECT channel, cause, sum(greatest(0, "
        "least(end_cycle, $last) - greatest(start_cycle, $first))) AS cycles "
        "FROM waits WHERE channel IS NOT NULL GROUP BY ALL), "
        "taken AS (SELECT channel, count(taken_cycle) FILTER (NOT bare) AS elements "
        "FROM transfers GROUP BY channel) "
        "SELECT name, producer, consumer, depth, forward_cycles, "
        "coalesce(e.cycles, 0)::BIGINT, coalesce(f.cycles, 0)::BIGINT, coalesce(elements, 0), "
        "family "
        "FROM channels c "
        f"LEFT JOIN waited e ON e.channel = c.channel AND e.cause = '{Cause.EMPTY}' "
        f"LEFT JOIN waited f ON f.channel = c.channel AND f.cause = '{Cause.FULL}' "
        "LEFT JOIN taken ON taken.channel = c.channel ORDER BY c.channel",
        first=first,
        last=last,
    )
    names, *others, family = zip(*rows, strict=True) if rows else ((),) * len(columns)
    values = [list(map(visible, names)), *map(list, others), list(map(visible, family))]
    return dict(zip(columns, values, strict=True))


def steps(accounts: Accounts) -> dict[str, np.ndarray]:
    """Return columns of the critical path, ``step.cycles`` and ``step.root``; empty if too long.

    Neighbours that go through one root are one step.
    """
    number = {root: place for place, root in enumerate(_known(accounts))}
    merged: list[list[int]] = []
    for step in accounts.path:
        root = number[step.root]
        if merged and merged[-1][1] == root:
            merged[-1][0] += step.end - step.start
        else:
            merged.append([step.end - step.start, root])
    rows = np.array(merged if len(merged) <= _STEPS else [], np.int64).reshape(-1, 2)
    return {"step.cycles": rows[:, 0], "step.root": rows[:, 1]}


def _known(accounts: Accounts) -> list[Root]:
    return sorted({*accounts.charged, *accounts.on_path()})


def _roots(accounts: Accounts) -> JsonObject:
    """Return the roots, their cycles of all units, of each unit, and of the critical path."""
    path = accounts.on_path()
    known = _known(accounts)
    number = {root: place for place, root in enumerate(known)}
    stalled = Counter(root for each in accounts.by_unit.values() for root in each)

    def counted(cycles: Counter[Root], most: int | None = None) -> list[tuple[int, int]]:
        ranked = sorted(cycles.items(), key=lambda item: (-item[1], item[0]))
        return [(number[root], each) for root, each in ranked[:most]]

    return {
        "roots": [
            {
                "name": visible(accounts.names.root(root)),
                "family": visible(accounts.names.folded.root(root)),
                "unit": root.unit,
                "units": stalled[root],
                "state": _state(root),
            }
            for root in known
        ],
        "charged": counted(accounts.charged),
        "charged_by_unit": {
            str(unit): counted(cycles, _ROOTS) for unit, cycles in accounts.by_unit.items()
        },
        "path": counted(path),
        "phases": [
            (start, end, number[root], round(100 * share, 1))
            for start, end, root, share in phases(accounts.timelines, accounts.path)
        ],
    }


def _state(root: Root) -> int:
    """Return what the critical path is drawn as where it goes through ``root``."""
    if root.kind in MEMORIES:
        return SHOWN.index(Cause(root.kind))
    return SHOWN.index(Cause.BUSY if root.kind == "unit" else Cause.IDLE)


def buses(trace: RecordedRun, accounts: Accounts) -> JsonObject | None:
    """Return shares of the cycles of data buses; None where the model counts none.

    Uses that there were none of are left out. Of many channels or periods, neighbours are one.
    """
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
        "uses": [
            {"label": use.label, "colour": use.colour, "meaning": use.meaning} for use in uses
        ],
        "edges": [*range(0, len(stretches) * width, width), last],
        "shares": _shares(stretches, uses),
        "channels": [
            _channel(number * a_bar, channels, uses)
            for number, channels in enumerate(_grouped(counters.channels, a_bar))
        ],
        "note": f"Percent of the cycles of its data buses, in stretches of "
        f"{counted(width, 'cycle')}.",
        "findings": [row_outcomes(counters)] if slow is None else list(slow.findings),
    }


def _grouped(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def _shares(groups: Sequence[Sequence[BusCycles]], uses: Sequence[BusUse]) -> list[list[float]]:
    """Return the percentage of each use, in each group."""
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

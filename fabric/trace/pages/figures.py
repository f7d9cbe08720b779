"""The figures of a page: those of ``trace stalls``, and what is said of the run, as plain data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.telling.causes import MEMORIES, SHOWN, WAITS, Cause
from fabric.telling.place import Place
from fabric.telling.wording import counted, visible
from fabric.trace.analysis.critical import phases
from fabric.trace.analysis.gains import by_change
from fabric.trace.analysis.stalled import stages_of

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject
    from fabric.trace.analysis.roots import Root
    from fabric.trace.analysis.stalled import StageFigures
    from fabric.trace.analysis.stalls import Accounts
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["AT_CHANNELS", "figures", "steps"]

AT_CHANNELS: Final = (str(Cause.EMPTY), str(Cause.FULL))
"""What is waited for at a channel: columns of channels."""

_ROOTS: Final = 5
"""Of each unit."""

_STEPS: Final = 60_000


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

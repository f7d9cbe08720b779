"""The finest level of a page: single waits and single transfers, as many as a page has room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.telling.causes import WAITS, Cause
from fabric.trace.pages.packed import compressed

if TYPE_CHECKING:
    from fabric.trace.pages.packed import Columns
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["Detail", "detail_of"]

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
SELECT s.unit, since AS start, until - since AS cycles,
    until - least(greatest(until_cycle, since), until) AS way,
    coalesce(port, coalesce(counted.ports, 0)
        + list_position({[str(cause) for cause in WAITS]}, cause) - 1) AS port
FROM seen s LEFT JOIN counted USING (unit)
LEFT JOIN ports p ON p.unit = s.unit AND p.channel = s.channel AND p.side = (cause = '{Cause.FULL}')
WHERE since < until OR (open AND since = until)
ORDER BY s.unit, since, until, open
"""
_TRANSFERS: Final = """
SELECT channel, sent_cycle AS sent, coalesce(taken_cycle - sent_cycle + 1, 0) AS held,
    stop * 2 + bare::BIGINT AS stop, send_wait_cycles AS send_wait,
    receive_wait_cycles AS receive_wait
FROM transfers ORDER BY channel, element
"""


@dataclass(frozen=True)
class Detail:
    """What of the finest level is in a page.

    Attributes:
        origin: the cycle from which the columns count.
        columns: of waits, ``wait.gap`` (from the end of the one before, or from ``origin``),
            ``wait.cycles``, ``wait.way`` (the rest of it, in which what ended it was on its way)
            and ``wait.port`` (a unit's inputs, then its outputs, then the causes of ``WAITS``
            without a channel); of transfers, ``transfer.gap`` (between the sends of a channel),
            ``transfer.held`` (cycles in the channel and 1, or 0 where it still is),
            ``transfer.stop`` (twice the level, and 1 for a bare stop), ``transfer.send_wait`` and
            ``transfer.receive_wait``.
        waits, transfers: how many are there, by unit and by channel; None of those left out.
        all_waits, all_transfers: how many were recorded.
    """

    origin: int
    columns: Columns
    waits: list[int | None]
    transfers: list[int | None]
    all_waits: int
    all_transfers: int


def detail_of(
    trace: RecordedRun, units: Sequence[int], channels: Sequence[int], letters: int
) -> Detail:
    """Choose what takes at most so many letters: all, or the first of ``units`` and ``channels``.

    Nothing of the finest level is left where ``letters`` are too few for any of it.
    """
    first, last = trace.window
    ((all_units, all_channels),) = trace.rows(
        "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM channels)"
    )
    waits = trace.numpy(_WAITS, first=first, last=last)
    transfers = trace.numpy(_TRANSFERS)
    origin = int(
        min(first, waits["start"].min(initial=first), transfers["sent"].min(initial=first))
    )
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
            **_wait_columns(waits, kept_units, origin, all_units),
            **_transfer_columns(transfers, kept_channels, origin, all_channels),
        }
        size = compressed(columns)
        if size <= letters or not room:
            break
        rows = len(columns["wait.gap"]) + len(columns["transfer.gap"])
        room = int(rows * _MARGIN * max(letters, 0) / size)
    return Detail(
        origin,
        columns,
        _counts(of_units, kept_units),
        _counts(of_channels, kept_channels),
        len(waits["unit"]),
        len(transfers["channel"]),
    )


def _fitting(ranked: Iterable[int], counts: np.ndarray, room: int) -> set[int]:
    """Return those of ``ranked`` that fit, each considered after those before it."""
    kept = set()
    for number in ranked:
        if counts[number] <= room:
            room -= int(counts[number])
            kept.add(number)
    return kept


def _counts(counts: np.ndarray, kept: set[int]) -> list[int | None]:
    return [int(count) if number in kept else None for number, count in enumerate(counts)]


def _chosen(
    table: dict[str, np.ndarray], owner: str, kept: set[int], owners: int
) -> dict[str, np.ndarray]:
    """Return the rows whose ``owner`` is kept, as whole numbers."""
    mask = np.zeros(owners, np.bool_)
    mask[sorted(kept)] = True
    rows = mask[table[owner]]
    return {name: np.asarray(values[rows], np.int64) for name, values in table.items()}


def _gaps(owner: np.ndarray, begins: np.ndarray, ends: np.ndarray, origin: int) -> np.ndarray:
    """Return how long after the end before each begins; the first of an owner, after ``origin``."""
    before = np.concatenate([[origin], ends[:-1]])
    new = np.diff(owner, prepend=-1) != 0
    return begins - np.where(new, origin, before)


def _wait_columns(
    table: dict[str, np.ndarray], kept: set[int], origin: int, units: int
) -> dict[str, np.ndarray]:
    rows = _chosen(table, "unit", kept, units)
    ends = rows["start"] + rows["cycles"]
    return {
        "wait.gap": _gaps(rows["unit"], rows["start"], ends, origin),
        **{f"wait.{name}": rows[name] for name in ("cycles", "way", "port")},
    }


def _transfer_columns(
    table: dict[str, np.ndarray], kept: set[int], origin: int, channels: int
) -> dict[str, np.ndarray]:
    rows = _chosen(table, "channel", kept, channels)
    return {
        "transfer.gap": _gaps(rows["channel"], rows["sent"], rows["sent"], origin),
        **{
            f"transfer.{name}": rows[name] for name in ("held", "stop", "send_wait", "receive_wait")
        },
    }

"""From the tables of a trace to the record of its run, which can be timed again."""

from __future__ import annotations

# Any: what a file of the trace may hold.
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fabric.retiming import rows as r
from fabric.retiming.of_tasks import Rows
from fabric.retiming.record import Record, RecordedChannel
from fabric.retiming.recording import About, record_of
from fabric.retiming.retimer import Retimer
from fabric.telling.wording import counted
from fabric.trace.reading.refusals import refused
from fabric.trace.reading.views import CHANNELS
from fabric.trace.reading.whole import is_number

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["record_in"]

_MISSING: Final = f"""
SELECT 1 FROM recorded GROUP BY channel HAVING count(*) <> max(element) + 1 OR min(element) < 0
UNION ALL
SELECT 1 FROM recorded_readings late ANTI JOIN recorded ON late."order" = sent_order
WHERE operation = {r.LATE}
UNION ALL
SELECT 1 FROM recorded_readings first ANTI JOIN recorded
ON first.channel = recorded.channel AND amount = element
WHERE operation = {r.ARRIVAL}
"""
"""A row for each that others need and that is not there."""


def record_in(trace: RecordedRun) -> Record:
    """Return the record of the run.

    Raises:
        ConfigurationError: it did not complete, or not all of it was traced or is there.
    """
    who = f"trace {trace.folder}"
    if trace.status != "completed":
        raise refused(f"{who}: the run ended with {trace.status}: expected one that completed")
    for name in ("window", "nodes"):
        if trace.meta.get(name) is not None:
            raise refused(f"{who}: only a part was traced: expected a run without --trace-{name}")
    if trace.shared_channels:
        raise refused(
            f"{who}: {counted(len(trace.shared_channels), 'channel')} of the run shared the links "
            "of its network, which the record does not tell about: expected a run without "
            "[network], or with links that nothing limits"
        )
    about = _about(trace)
    if about is None:
        raise refused(
            f"{who}: it does not say which units the HBM serves: an older step-fabric wrote it"
        )
    if trace.damaged or trace.rows(_MISSING):
        raise _damaged(who)
    if trace.logged is None:
        transfers = _table(trace, r.LONG_COLUMNS, "recorded")
        record = record_of(Rows([transfers], _operations(trace)), about)
    else:
        record = trace.logged.record(about)
    retimer = Retimer(record)
    ends = [cycle for (cycle,) in trace.rows("SELECT cycle FROM states ORDER BY unit")]
    again = retimer.time(record.depths)
    if again.cycles != trace.cycles or ends != retimer.clocks[record.first[1:] - 1].tolist():
        raise _damaged(who)
    return record


def _damaged(who: str) -> Exception:
    return refused(f"{who}: rows of its tables are missing: expected all that the run wrote")


def _about(trace: RecordedRun) -> About | None:
    units = trace.unit_names()
    clients = trace.meta.get("off_chip", {}).get("clients")
    if not isinstance(clients, list) or not all(
        is_number(each) and each < len(units) for each in clients
    ):
        return None
    if trace.shutdown_cycles is None:
        return None
    hardware: Any = trace.meta.get("hardware") or {}
    return About(
        program=str(trace.meta.get("name")),
        units=tuple(units),
        channels=tuple(RecordedChannel(*row) for row in trace.rows(CHANNELS)),
        cycles=trace.cycles,
        clients=tuple(clients),
        shutdown_cycles=trace.shutdown_cycles,
        shares_on_chip=hardware.get("on_chip", {}).get("capacity_bytes") is not None,
    )


def _operations(trace: RecordedRun) -> Counters:
    tables = ("recorded_operations", "recorded_readings")
    return np.concatenate([_table(trace, r.OPERATION_COLUMNS, table) for table in tables])


def _table(trace: RecordedRun, columns: tuple[str, ...], table: str) -> Counters:
    names = ", ".join(f'"{column}"' for column in columns)
    found = trace.numpy(f"SELECT {names} FROM {table}")
    return np.column_stack([found[column] for column in columns]).astype(np.int64)

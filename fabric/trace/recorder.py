"""The recorder of a run: makes what is traced, and writes what it records into ``<run>/trace``.

The folder holds ``meta.json``, ``units``, ``channels`` and ``columns`` from the start; segments of
``short``, ``long`` and ``operations`` rows as the run goes on; ``pending``, ``waiting`` and
``states``, what is under way, about every two seconds and at the end; and ``end.json`` once the
run is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import trio

from fabric.channel import Channel
from fabric.errors import ConfigurationError
from fabric.plain import json_text
from fabric.trace import static
from fabric.trace.options import TraceOptions
from fabric.trace.rows import OPERATION_COLUMNS, Rows
from fabric.trace.segments import SegmentWriter
from fabric.trace.traced import TracedChannel, TracedHbm, TracedOnChipMemory
from fabric.vocabulary import SCHEMA_VERSION

if TYPE_CHECKING:
    from fabric.clock import VirtualClock
    from fabric.hardware import HbmDescription
    from fabric.machine import Machine
    from fabric.unit import Unit

__all__ = ["Recorder"]

_SNAPSHOT_SECONDS: Final = 2.0


class Recorder:
    """Records one run.

    Attributes:
        failure: why recording stopped early; the run goes on.
    """

    def __init__(self, options: TraceOptions) -> None:
        """Record what ``options`` say, once ``start`` is given a folder."""
        self.failure: str | None = None
        self._options: Final = options
        self._rows: Final = Rows(self._flush)
        self._end: dict[str, Any] = {}
        self._segments = 0
        self._snapshots = 0

    def channel(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        number: int,
    ) -> Channel:
        """Return the channel ``number``, a traced one where the options say so."""
        if self._options.keeps(producer.name) or self._options.keeps(consumer.name):
            return TracedChannel(name, depth, producer, consumer, clock, number, self._rows)
        return Channel(name, depth, producer, consumer, clock)

    def hbm(
        self, description: HbmDescription, readers: list[Unit], writers: list[Unit]
    ) -> TracedHbm:
        """Return the HBM."""
        return TracedHbm(description, readers, writers, self._rows)

    def check(self, units: Sequence[Unit]) -> None:
        """Refuse options that keep none of ``units``.

        Raises:
            ConfigurationError: nothing would be traced.
        """
        self._options.check([unit.name for unit in units])

    def on_chip_memory(self, capacity_bytes: int | None, clock: VirtualClock) -> TracedOnChipMemory:
        """Return the on-chip memory."""
        return TracedOnChipMemory(capacity_bytes, clock, self._rows)

    def start(self, folder: Path, machine: Machine, head: Mapping[str, Any]) -> None:
        """Write what is known before the run into ``folder``, a new one.

        Args:
            folder: made here.
            machine: whose run is traced.
            head: what else is known about the run.

        Raises:
            ConfigurationError: the folder cannot be made or written.
        """
        self._machine = machine
        self._folder = folder
        options = {"window": self._options.window, "nodes": self._options.nodes}
        try:
            folder.mkdir()
            self._writer = SegmentWriter(folder)
            self._json("meta", {"schema_version": SCHEMA_VERSION, **head, **options})
            self._writer.write("units", static.unit_table(machine))
            self._writer.write("channels", static.channel_table(machine))
            self._writer.write("columns", static.column_table())
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(
                f"trace {folder}: {reason}: expected a folder that can be written"
            ) from None

    async def run(self) -> None:
        """Write what there is about every two seconds, so that a killed run keeps it."""
        while True:
            await trio.sleep(_SNAPSHOT_SECONDS)
            self._flush()
            self._snapshot()

    def finish(self, status: str, cycles: int) -> None:
        """Write the rest."""
        for channel in self._machine.channels:
            if isinstance(channel, TracedChannel):
                channel.give_up()
        self._flush()
        self._snapshot()
        self._end = {"status": status, "cycles": cycles}
        self._attempt("its end", lambda: self._json("end", self._end))
        self._writer.close()
        self._rows.short.release()
        self._rows.long.release()

    def conclude(self, status: str, verified: bool | None) -> None:
        """Say at last what the report says of the run, once its outputs were looked at."""
        end = self._end | {"status": status, "verified": verified}
        self._attempt("its end", lambda: self._json("end", end))

    def _flush(self) -> None:
        rows = self._rows
        if rows.short.offset or rows.long.offset or rows.operations:
            self._segments += 1
            self._attempt(f"segment {self._segments}", self._write_segment)
        rows.short.offset = rows.long.offset = 0
        rows.operations.clear()

    def _write_segment(self) -> None:
        rows = self._rows
        for name, packed, begun, seen in (
            ("short", rows.short, "sent_cycle", "taken_cycle"),
            ("long", rows.long, "reserved_cycle", "seen_cycle"),
        ):
            table = np.frombuffer(packed.buffer, np.int64, packed.offset // 8)
            table = table.reshape(-1, len(packed.columns))
            waits = {begun: "send_wait_cycles", seen: "receive_wait_cycles"}
            self._write_table(name, packed.columns, table, waits, "taken_cycle")
        table = np.array(rows.operations, np.int64)
        self._write_table("operations", OPERATION_COLUMNS, table, {"cycle": "wait_cycles"}, "cycle")

    def _write_table(
        self,
        name: str,
        columns: tuple[str, ...],
        table: Any,
        waits: Mapping[str, str],
        ended: str,
    ) -> None:
        """Write the rows that touch the window, from the first of their waits to their end."""
        if not len(table):
            return
        if self._options.window is not None:
            first, last = self._options.window
            column = {name: table[:, number] for number, name in enumerate(columns)}
            starts = [column[end] - column[waited] for end, waited in waits.items()]
            table = table[(column[ended] >= first) & (np.minimum.reduce(starts) <= last)]
        arrays = dict(zip(columns, np.ascontiguousarray(table.T), strict=True))
        self._writer.write(f"{name}-{self._segments:06}", arrays)

    def _snapshot(self) -> None:
        self._snapshots += 1
        self._attempt(f"snapshot {self._snapshots}", self._write_snapshot)

    def _write_snapshot(self) -> None:
        machine = self._machine
        number = self._snapshots
        for name, table in (
            ("pending", static.pending_table(machine)),
            ("waiting", static.waiting_table(machine)),
            ("states", static.state_table(machine, self._rows.next_order())),
        ):
            if len(next(iter(table.values()))):
                self._writer.write(f"{name}-{number:06}", table)
        for name in ("states", "waiting", "pending"):
            (self._folder / f"{name}-{number - 1:06}.parquet").unlink(missing_ok=True)

    def _attempt(self, what: str, write: Callable[[], None]) -> None:
        """Write; where that fails, keep the reason and record nothing more."""
        if self.failure is not None:
            return
        try:
            write()
        except OSError as error:
            reason = error.strerror or str(error)
            self.failure = f"trace {self._folder}: {what} could not be written: {reason}"

    def _json(self, name: str, value: dict[str, Any]) -> None:
        beside = self._folder / f"{name}.json.tmp"
        beside.write_text(json_text(value), encoding="utf-8")
        beside.replace(self._folder / f"{name}.json")

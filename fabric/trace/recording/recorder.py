"""The recorder of a run: makes what is traced, and writes what it records into ``<run>/trace``.

The folder holds ``meta.json``, ``units``, ``channels`` and ``columns`` from the start; segments of
``short``, ``long`` and ``operations`` rows as the run goes on; ``pending``, ``waiting`` and
``states``, what is under way, now and then and at the end; and ``end.json`` once the run is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from fabric.engine.channel import Channel
from fabric.telling.causes import Operation
from fabric.telling.errors import ConfigurationError
from fabric.telling.plain import json_text
from fabric.telling.vocabulary import SCHEMA_VERSION
from fabric.telling.whole_file import write_whole
from fabric.trace.recording import static
from fabric.trace.recording.options import TraceOptions
from fabric.trace.recording.spool import Spool
from fabric.trace.recording.traced import TracedChannel, TracedOffChip, TracedOnChipMemory

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.off_chip import OffChip
    from fabric.engine.unit import Unit
    from fabric.state.run_state import RunState
    from fabric.wiring.elaborate import Plan

__all__ = ["Recorder"]

_SNAPSHOT_SECONDS: Final = 0.5
_SHARE: Final = 10
"""Snapshots of a large machine are rarer: they take at most one part in so many of the time."""


class Recorder:
    """Records one run."""

    def __init__(self, options: TraceOptions) -> None:
        """Record what ``options`` say, once ``start`` is given a folder."""
        self._options: Final = options
        self._spool: Final = Spool(options.window)
        self._end: dict[str, object] = {}
        self._snapshots = 0
        self._channels: list[TracedChannel] = []
        self._off_chip: TracedOffChip | None = None

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
            rows = self._spool.rows
            traced = TracedChannel(name, depth, producer, consumer, clock, number, rows)
            self._channels.append(traced)
            return traced
        return Channel(name, depth, producer, consumer, clock)

    def off_chip(self, memory: OffChip, request_bytes: int) -> TracedOffChip:
        """Return what stands for ``memory``, whose requests move ``request_bytes`` each."""
        self._off_chip = TracedOffChip(memory, request_bytes, self._spool.rows)
        return self._off_chip

    def check(self, units: Sequence[Unit]) -> None:
        """Refuse options that keep none of ``units``.

        Raises:
            ConfigurationError: nothing would be traced.
        """
        self._options.check([unit.name for unit in units])

    def on_chip_memory(self, capacity_bytes: int | None, clock: VirtualClock) -> TracedOnChipMemory:
        """Return the on-chip memory."""
        return TracedOnChipMemory(capacity_bytes, clock, self._spool.rows)

    def start(
        self,
        folder: Path,
        plan: Plan,
        look: Callable[[], RunState],
        head: Mapping[str, object],
        tell: Callable[[str], object],
    ) -> None:
        """Write what is known before the run into ``folder``, a new one.

        Args:
            folder: made here.
            plan: of the program.
            look: returns the state of the run.
            head: what else is known about the run.
            tell: is told at once what cannot be written.

        Raises:
            ConfigurationError: the folder cannot be made or written.
        """
        self._plan = plan
        self._look = look
        self._folder = folder
        state = look()
        options = {"window": self._options.window, "nodes": self._options.nodes}
        memory = plan.program.hardware.hbm
        # Whoever reads the trace may not know the model.
        off_chip = {
            "request_bytes": memory.request_bytes,
            "peak_bytes_per_cycle": float(memory.peak_bytes_per_cycle),
        }
        about = {"schema_version": SCHEMA_VERSION, **head, **options, "off_chip": off_chip}
        try:
            folder.mkdir()
            self._spool.open(folder, tell)
            self._json("meta", about)
            self._spool.write("units", static.unit_table(state))
            self._spool.write("channels", static.channel_table(state, plan))
            self._spool.write("columns", static.column_table())
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(
                f"trace {folder}: {reason}: expected a folder that can be written"
            ) from None

    async def run(self) -> None:
        """Write what there is about twice a second, so that a killed run keeps it."""
        seconds = _SNAPSHOT_SECONDS
        with self._spool.written():
            while True:
                await trio.sleep(seconds)
                start = time.perf_counter()
                self._snapshot()
                seconds = max(_SNAPSHOT_SECONDS, _SHARE * (time.perf_counter() - start))

    def finish(self, status: str, cycles: int) -> None:
        """Write the rest."""
        for channel in self._channels:
            channel.give_up()
        self._snapshot()
        self._end = {"status": status, "cycles": cycles}
        self._spool.attempt("its end", lambda: self._json("end", self._end))
        self._spool.close()

    def conclude(self, status: str, verified: bool | None) -> None:
        """Say at last what the report says of the run, once its outputs were looked at."""
        end = self._end | {"status": status, "verified": verified}
        self._spool.attempt("its end", lambda: self._json("end", end))

    def _snapshot(self) -> None:
        self._snapshots += 1
        self._spool.attempt(f"snapshot {self._snapshots}", self._write_snapshot)

    def _write_snapshot(self) -> None:
        state = self._look()
        number = self._snapshots
        next_order = self._spool.rows.next_order()
        for name, table in (
            ("pending", static.pending_table(self._channels)),
            ("waiting", static.waiting_table(state, self._plan)),
            ("states", static.state_table(state, self._served(state), next_order)),
        ):
            if len(next(iter(table.values()))):
                self._spool.write(f"{name}-{number:06}", table)
        for name in ("states", "waiting", "pending"):
            (self._folder / f"{name}-{number - 1:06}.parquet").unlink(missing_ok=True)

    def _served(self, state: RunState) -> dict[int, int]:
        """Return how many requests of the bursts under way the HBM has served, by unit."""
        memory = self._off_chip
        if memory is None:
            return {}
        return {
            unit.number: memory.under_way(unit.number)
            for unit in state.units
            if unit.wait is not None and unit.wait.operation is Operation.OFF_CHIP
        }

    def _json(self, name: str, value: dict[str, object]) -> None:
        write_whole(self._folder / f"{name}.json", json_text(value))

"""The recorder of a run: makes what is traced, and writes what it records into ``<run>/trace``.

The folder holds ``meta.json``, ``units``, ``channels`` and ``columns`` from the start; segments of
``short``, ``long`` and ``operations`` rows as the run goes on; ``pending``, ``waiting`` and
``states``, what is under way, now and then and at the end; and ``end.json`` once the run is over.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from fabric.drawing.picture import stream_label
from fabric.log.watcher import Watcher
from fabric.machine.state_of import clients_of
from fabric.retiming.log_tables import LogWriter
from fabric.symbolic.folding import operator_text
from fabric.telling.causes import Operation
from fabric.telling.errors import ConfigurationError
from fabric.telling.plain import JsonObject, json_text
from fabric.telling.vocabulary import SCHEMA_VERSION
from fabric.telling.whole_file import write_whole
from fabric.trace.recording import static
from fabric.trace.recording.options import TraceOptions
from fabric.trace.recording.spool import Spool
from fabric.trace.table_file import SUFFIX

if TYPE_CHECKING:
    from fabric.machine.machine import Machine
    from fabric.retiming.log_tables import Table
    from fabric.state.run_state import RunState

__all__ = ["Recorder"]

_SNAPSHOT_SECONDS: Final = 1.0
_SHARE: Final = 10
"""Snapshots of a large machine are rarer: they take at most one part in so many of the time."""


class Recorder:
    """Records one run.

    Attributes:
        observer: is told what there is to record.
    """

    def __init__(self, options: TraceOptions, *, needs_tasks: bool) -> None:
        """Record what ``options`` say, once ``start`` is given a folder.

        Every operator is to be a task where it ``needs_tasks``; else what the compiled loop does
        is in the log as the loop notes it.
        """
        self._options: Final = options
        self._spool: Final = Spool(options.window)
        self.observer: Final = Watcher(self._spool.rows, options.keeps, options.check)
        self.observer.needs_tasks = needs_tasks or options != TraceOptions()
        self._end: dict[str, object] = {}
        self._log: LogWriter | None = None
        self._snapshots = 0

    def start(
        self,
        folder: Path,
        look: Callable[[], RunState],
        served: Callable[[int], int],
        head: Mapping[str, object],
        tell: Callable[[str], object],
        machine: Machine,
    ) -> None:
        """Write what is known before the run into ``folder``, a new one.

        Args:
            folder: made here.
            look: returns the state of the run.
            served: returns how many requests of a unit's burst under way the HBM has served.
            head: what else is known about the run.
            tell: is told at once what cannot be written.
            machine: runs the program.

        Raises:
            ConfigurationError: the folder cannot be made or written.
        """
        self._plan = plan = machine.plan
        self._look = look
        self._served = served
        self._folder = folder
        self._region = region = machine.region
        if region is not None and region.journal is not None:
            number = {channel: at for at, channel in enumerate(machine.channels)}
            self._log = LogWriter(region.journal, number)
        options = {"window": self._options.window, "nodes": self._options.nodes}
        memory = plan.program.hardware.hbm
        # Whoever reads the trace may not know the model.
        off_chip = {
            "request_bytes": memory.request_bytes,
            "peak_bytes_per_cycle": float(plan.peak_bytes_per_cycle),
            "clients": list(clients_of(plan)),
        }
        about = {"schema_version": SCHEMA_VERSION, **head, **options, "off_chip": off_chip}
        about["compiled"] = self._log is not None
        # For pictures: an operator with its functions, and what its streams carry.
        about["functions"] = [operator_text(node) for node in plan.nodes]
        about["streams"] = [
            stream_label(edge.consumer.inputs[edge.input].type) for edge in plan.edges
        ]
        if machine.routes is not None and machine.routes.trees:
            about["shared_links"] = _shared_links(machine)
        try:
            folder.mkdir()
            self._spool.open(folder, tell)
            self._json("meta", about)
            self._spool.write("units", static.unit_table(machine))
            self._spool.write("channels", static.channel_table(machine))
            self._spool.write("columns", static.column_table())
            if self._log is not None:
                self._spool.write("ports", self._log.ports())
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(
                f"trace {folder}: {reason}: expected a folder that can be written"
            ) from None

    def anew(self) -> Recorder:
        """Return another one of a run of tasks; what this one has written is removed."""
        self._spool.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return Recorder(self._options, needs_tasks=True)

    async def run(self) -> None:
        """Write what there is about once a second, so that a killed run keeps it."""
        seconds = _SNAPSHOT_SECONDS
        with self._spool.written():
            while True:
                await trio.sleep(seconds)
                start = time.perf_counter()
                self._snapshot()
                seconds = max(_SNAPSHOT_SECONDS, _SHARE * (time.perf_counter() - start))

    def finish(self, status: str, state: RunState, shutdown_cycles: int | None) -> None:
        """Write the rest.

        Args:
            status: how the run ended.
            state: to which it came.
            shutdown_cycles: so long after its last client the off-chip memory stopped; None where
                the run did not complete.
        """
        self.observer.finish()
        self._snapshot(state)
        self._end = {
            "status": status,
            "cycles": state.cycles,
            "shutdown_cycles": shutdown_cycles,
            "hbm": _counted(state),
        }
        self._spool.attempt("its end", lambda: self._json("end", self._end))
        self._spool.close()

    def conclude(
        self,
        status: str,
        verified: bool | None,
        priced: JsonObject,
        links: Sequence[Sequence[str]],
        on_chip_bytes: Sequence[int],
    ) -> None:
        """Say at last what the report says of the run, once its outputs were looked at.

        Args:
            status: how it ended.
            verified: whether its outputs are right.
            priced: rows of text about seconds and joules; empty where nothing has a price.
            links: of a network that have a limit, as rows of text.
            on_chip_bytes: that each operator requires, in node order; none where nobody asked.
        """
        end = self._end | {"status": status, "verified": verified, "priced": priced}
        end["on_chip_bytes"] = list(on_chip_bytes)
        if links:
            end["links"] = [list(row) for row in links]
        self._spool.attempt("its end", lambda: self._json("end", end))

    def _snapshot(self, state: RunState | None = None) -> None:
        """Write the ``state``; the one that the run is in where None."""
        self._snapshots += 1
        self._spool.attempt(
            f"snapshot {self._snapshots}", lambda: self._write_snapshot(state or self._look())
        )

    def _write_snapshot(self, state: RunState) -> None:
        number = self._snapshots
        of_log: tuple[tuple[str, Table], ...] = ()
        if self._region is not None and self._log is not None:
            self._region.keep_journal()
            of_log = self._log.new()
        next_order = self.observer.next_order()
        for name, table in (
            *of_log,
            ("pending", static.pending_table(self.observer.pending)),
            ("waiting", static.waiting_table(state, self._plan)),
            ("states", static.state_table(state, self._served_in(state), next_order)),
        ):
            if len(next(iter(table.values()))):
                self._spool.write(f"{name}-{number:06}", table)
        for name in ("states", "waiting", "pending", "stages"):
            (self._folder / f"{name}-{number - 1:06}{SUFFIX}").unlink(missing_ok=True)

    def _served_in(self, state: RunState) -> dict[int, int]:
        """Return how many requests of the bursts under way the HBM has served, by unit."""
        return {
            unit.number: self._served(unit.number)
            for unit in state.units
            if unit.wait is not None and unit.wait.operation is Operation.OFF_CHIP
        }

    def _json(self, name: str, value: dict[str, object]) -> None:
        write_whole(self._folder / f"{name}.json", json_text(value))


def _shared_links(machine: Machine) -> JsonObject:
    """Return the links with a limit that channels take, numbered anew, and the flows over them."""
    routes, floor = machine.routes, machine.plan.floor
    assert routes is not None
    assert floor is not None
    capacities = floor.mesh.capacities
    used = {link for links, _ in routes.trees for link in links if capacities[link] is not None}
    number = {link: at for at, link in enumerate(sorted(used))}
    return {
        "capacities": [capacities[link] for link in number],
        "flows": [
            {"links": [number[link] for link in links if link in number], "channels": [*channels]}
            for links, channels in routes.trees
        ],
    }


def _counted(state: RunState) -> object:
    """Return what the off-chip memory has counted, as JSON's own types; None of most models."""
    if state.hbm is None:
        return None
    from fabric.state.resource_use import as_document

    return as_document(state.hbm)

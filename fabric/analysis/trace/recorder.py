"""The recorder of a run, which writes into ``<run>/trace``.

The folder has ``meta.json``, ``units``, ``channels`` and ``columns`` from the start. Segments of
``operations`` follow during the run. ``waiting`` and ``states`` are written about once a second,
and at the end. ``end.json`` is last.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import trio

from fabric.analysis.deadlock.cause import channels_of, find_stuck
from fabric.analysis.drawing.picture import stream_label
from fabric.analysis.symbolic.folding import operator_text
from fabric.analysis.trace.database import SUFFIX
from fabric.analysis.trace.reading.integrity import FORMS
from fabric.analysis.trace.selection import TraceOptions
from fabric.analysis.trace.spool import Spool
from fabric.graph.wiring.elaborate import Plan
from fabric.messages.causes import Cause
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import write_whole
from fabric.messages.text import JsonObject, json_text
from fabric.messages.vocabulary import FIELDS, SCHEMA_VERSION, TABLES
from fabric.timing.machine.machine import Machine, shutdown_cycles_of, state_of
from fabric.timing.state.resource_use import as_document
from fabric.timing.state.run_state import Expected, RunState, expected_of, open_waits

_SNAPSHOT_SECONDS: Final = 1.0

_PAUSE: Final = 10
"""The pause after a snapshot, in multiples of the time that the snapshot took."""

Columns: TypeAlias = dict[str, np.ndarray]

_DTYPES: Final = {"BIGINT": np.int64, "BOOLEAN": np.bool_, "VARCHAR": np.object_}


class Recorder:
    def __init__(self, options: TraceOptions) -> None:
        self._options: Final = options
        self.spool: Final = Spool(options)
        self._end: dict[str, object] = {}
        self._snapshots = 0

    def start(
        self,
        folder: Path,
        machine: Machine,
        head: Mapping[str, object],
        notify: Callable[[str], object],
    ) -> None:
        """Write the facts before the run into the new ``folder``.

        ``notify`` receives write errors immediately.
        """
        self._machine, self._folder = machine, folder
        meta = self._meta(machine, head)
        ends = [(channel.producer, channel.consumer) for channel in machine.channel_facts]
        try:
            folder.mkdir()
            self.spool.open(folder, notify, ends)
            self._json("meta", meta)
            self.spool.write("units", _table("units", _unit_rows(machine)))
            self.spool.write("channels", _table("channels", _channel_rows(machine)))
            self.spool.write("columns", _table("columns", _column_rows()))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(
                f"trace {folder}: {reason}: expected a folder that can be written"
            ) from None

    def _meta(self, machine: Machine, head: Mapping[str, object]) -> dict[str, object]:
        plan = machine.plan
        memory = plan.program.hardware.hbm
        meta = {
            "schema_version": SCHEMA_VERSION,
            **head,
            "window": self._options.window,
            "nodes": self._options.nodes,
            "off_chip": {
                "request_bytes": memory.request_bytes,
                # A reader may lack the memory's model, so its peak is written.
                "peak_bytes_per_cycle": float(plan.peak_bytes_per_cycle),
                "clients": list(plan.clients),
                "tensors": list(_tensors(plan, memory.request_bytes)),
            },
            # For pictures: operators with their functions, and labels of streams.
            "functions": [operator_text(node) for node in plan.nodes],
            "streams": [stream_label(edge.consumer.inputs[edge.input].type) for edge in plan.edges],
        }
        if machine.routes is not None and machine.routes.trees:
            meta["shared_links"] = _shared_links(machine)
        return meta

    def restarted(self) -> Recorder:
        """Return a recorder for the run that begins again; remove the files of this one."""
        self.spool.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return Recorder(self._options)

    async def run(self) -> None:
        """Write new rows and the state about once a second, so that a killed run keeps them."""
        seconds = _SNAPSHOT_SECONDS
        with self.spool.written():
            while True:
                await trio.sleep(seconds)
                start = time.perf_counter()
                self._snapshot()
                seconds = max(_SNAPSHOT_SECONDS, _PAUSE * (time.perf_counter() - start))

    def finish(self, status: str, state: RunState) -> None:
        self.spool.finish()
        self._snapshot(state)
        self._end = {
            "status": status,
            "cycles": state.cycles,
            "shutdown_cycles": shutdown_cycles_of(self._machine) if status == "completed" else None,
            "hbm": None if state.hbm is None else as_document(state.hbm),
        }
        self.spool.attempt("its end", lambda: self._json("end", self._end))
        self.spool.close()

    def conclude(self, results: JsonObject) -> None:
        """Record the results of the report, once the outputs were checked."""
        self.spool.attempt("its end", lambda: self._json("end", self._end | results))

    def _snapshot(self, state: RunState | None = None) -> None:
        self._snapshots += 1
        self.spool.attempt(
            f"snapshot {self._snapshots}",
            lambda: self._write_snapshot(state or state_of(self._machine)),
        )

    def _write_snapshot(self, state: RunState) -> None:
        number = self._snapshots
        for name, rows in (
            ("waiting", [*_waiting_rows(state, self._machine.plan)]),
            ("states", [*_state_rows(state, self._machine, self.spool.places)]),
        ):
            if rows:
                self.spool.write(f"{name}-{number:06}", _table(name, rows))
        for name in ("states", "waiting"):
            (self._folder / f"{name}-{number - 1:06}{SUFFIX}").unlink(missing_ok=True)

    def _json(self, name: str, value: dict[str, object]) -> None:
        write_whole(self._folder / f"{name}.json", json_text(value))


def _tensors(plan: Plan, request_bytes: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the bytes of requests that read a tensor once, and its readers."""
    for placed in plan.memory_map.tensors:
        once_bytes = placed.bytes_once(request_bytes)
        readers = [node.index for node in placed.nodes if node.operator.off_chip == "read"]
        if once_bytes and readers:
            yield once_bytes, readers


def _shared_links(machine: Machine) -> JsonObject:
    """Return the limited links in use, renumbered, and the flows over them."""
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


def _table(form: str, rows: Iterable[tuple[object, ...]]) -> Columns:
    """Return ``rows`` as columns of the names and types in ``FORMS``."""
    columns = FORMS[form].items()
    values = [*zip(*rows, strict=True)] or [()] * len(columns)
    return {
        name: np.array(cells, _DTYPES[column.type])
        for (name, column), cells in zip(columns, values, strict=True)
    }


def _unit_rows(machine: Machine) -> Iterator[tuple[object, ...]]:
    for unit in machine.unit_facts:
        yield unit.number, unit.name, unit.operator, unit.kind, *unit.place, unit.flops_per_cycle


def _channel_rows(machine: Machine) -> Iterator[tuple[object, ...]]:
    for channel, edge in zip(machine.channel_facts, machine.plan.edges, strict=True):
        count = edge.type.count
        yield (
            channel.number,
            channel.name,
            channel.option,
            channel.depth,
            channel.forward_cycles,
            channel.backward_cycles,
            channel.producer,
            channel.consumer,
            count if isinstance(count, int) else -1,
            channel.carries,
        )


def _column_rows() -> Iterator[tuple[object, ...]]:
    for table, columns in TABLES.items():
        for column in columns:
            yield table, column, *FIELDS[column]


def _state_rows(state: RunState, machine: Machine, next_place: int) -> Iterator[tuple[object, ...]]:
    """Yield the clock and the wait of each unit.

    ``next_place``: rows of the log from this one on happened after the state.
    """
    memory, units = machine.off_chip, machine.units
    wanted, held = dict(state.on_chip.requests), dict(state.on_chip.held or ())
    for unit, open_wait in zip(state.units, open_waits(state), strict=True):
        number, wait = unit.number, unit.wait
        served, cause, channel = 0, "", None
        if open_wait is not None:
            cause, channel = open_wait.cause, open_wait.channel
        if memory is not None and cause == Cause.HBM:
            served = memory.served(units[number])
        yield (
            number,
            unit.cycle,
            unit.busy_cycles,
            unit.flops,
            unit.finished,
            "" if wait is None else wait.operation,
            wait is not None and wait.any_of,
            wanted.get(number, 0),
            held.get(number, 0),
            -1 if wait is None else wait.since_cycle,
            cause,
            -1 if channel is None else channel,
            served,
            next_place,
        )


def _waiting_rows(state: RunState, plan: Plan) -> Iterator[tuple[object, ...]]:
    """Yield each channel that a parked unit waits for."""
    loops = find_stuck(state).cores
    in_loop = {unit.number for loop in loops for unit in loop}
    of_loops = channels_of(state, chain.from_iterable(loops))
    expected = expected_of(plan, state, of_loops) if loops else {}
    for unit in state.units:
        wait = unit.wait
        if wait is None:
            continue
        for number in wait.channels:
            channel = state.channels[number]
            yield (
                unit.number,
                number,
                channel.taken,
                channel.held,
                -1 if channel.closed_cycle is None else channel.closed_cycle,
                *_expected_columns(expected[number] if unit.number in in_loop else None),
                *(wait.stops or (-1, -1)),
            )


def _expected_columns(expected: Expected | None) -> tuple[str, str, int, str]:
    if expected is None:
        return "", "", -1, ""
    place = expected.feedback
    feedback = "" if place is None else f"{place.file}:{place.line}"
    return str(expected.in_all), expected.shape, expected.per_output or -1, feedback

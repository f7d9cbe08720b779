"""The recorder of a run, which writes into ``<run>/trace``.

The folder has ``meta.json``, ``units``, ``channels`` and ``columns`` from the start. Segments of
``operations`` follow during the run. ``waiting`` and ``states`` are written about once a second,
and at the end. ``end.json`` is last.
"""

from __future__ import annotations

import math
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
from fabric.analysis.trace.selection import TraceOptions
from fabric.analysis.trace.spool import Spool
from fabric.analysis.trace.table_file import SUFFIX
from fabric.graph.values.stream_type import StreamType
from fabric.graph.wiring.elaborate import Plan
from fabric.messages.causes import Cause, Operation
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import write_whole
from fabric.messages.text import JsonObject, json_text
from fabric.messages.vocabulary import FIELDS, SCHEMA_VERSION, TABLES
from fabric.timing.machine.machine import Machine, shutdown_cycles_of, state_of
from fabric.timing.state.run_state import Expected, RunState, expected_of, open_waits

_SNAPSHOT_SECONDS: Final = 1.0

_PAUSE: Final = 10
"""The pause after a snapshot, in multiples of the time that the snapshot took."""

Columns: TypeAlias = dict[str, np.ndarray]


class Recorder:
    """Records one run."""

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
        tell: Callable[[str], object],
    ) -> None:
        """Write the facts before the run into the new ``folder``.

        ``tell`` receives write errors immediately.
        """
        self._machine = machine
        plan = machine.plan
        self._folder = folder
        options = {"window": self._options.window, "nodes": self._options.nodes}
        memory = plan.program.hardware.hbm
        # The peak is written because a reader may lack the model.
        off_chip = {
            "request_bytes": memory.request_bytes,
            "peak_bytes_per_cycle": float(plan.peak_bytes_per_cycle),
            "clients": list(plan.clients),
            "tensors": list(_tensors(plan, memory.request_bytes)),
        }
        about = {"schema_version": SCHEMA_VERSION, **head, **options, "off_chip": off_chip}
        # For pictures: operators with their functions, and labels of streams.
        about["functions"] = [operator_text(node) for node in plan.nodes]
        about["streams"] = [
            stream_label(edge.consumer.inputs[edge.input].type) for edge in plan.edges
        ]
        if machine.routes is not None and machine.routes.trees:
            about["shared_links"] = _shared_links(machine)
        try:
            folder.mkdir()
            ends = [(channel.producer, channel.consumer) for channel in machine.channel_facts]
            self.spool.open(folder, tell, ends)
            self._json("meta", about)
            self.spool.write("units", unit_table(machine))
            self.spool.write("channels", channel_table(machine))
            self.spool.write("columns", column_table())
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(
                f"trace {folder}: {reason}: expected a folder that can be written"
            ) from None

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
        """Write the rest."""
        self.spool.finish()
        self._snapshot(state)
        self._end = {
            "status": status,
            "cycles": state.cycles,
            "shutdown_cycles": shutdown_cycles_of(self._machine) if status == "completed" else None,
            "hbm": _hbm_counters(state),
        }
        self.spool.attempt("its end", lambda: self._json("end", self._end))
        self.spool.close()

    def conclude(self, results: JsonObject) -> None:
        """Record the results of the report, once the outputs were checked."""
        self.spool.attempt("its end", lambda: self._json("end", self._end | results))

    def _snapshot(self, state: RunState | None = None) -> None:
        """Write ``state``, or the present state."""
        self._snapshots += 1
        self.spool.attempt(
            f"snapshot {self._snapshots}",
            lambda: self._write_snapshot(state or state_of(self._machine)),
        )

    def _write_snapshot(self, state: RunState) -> None:
        number = self._snapshots
        for name, table in (
            ("waiting", waiting_table(state, self._machine.plan)),
            ("states", state_table(state, self._served_in(state), self.spool.places)),
        ):
            if len(next(iter(table.values()))):
                self.spool.write(f"{name}-{number:06}", table)
        for name in ("states", "waiting"):
            (self._folder / f"{name}-{number - 1:06}{SUFFIX}").unlink(missing_ok=True)

    def _served_in(self, state: RunState) -> dict[int, int]:
        memory, units = self._machine.off_chip, self._machine.units
        return {
            unit.number: memory.served(units[unit.number])
            for unit in state.units
            if memory is not None
            if unit.wait is not None and unit.wait.operation is Operation.OFF_CHIP
        }

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


def _hbm_counters(state: RunState) -> object:
    """Return the counters of the off-chip memory as JSON types; None for most models."""
    if state.hbm is None:
        return None
    from fabric.timing.state.resource_use import as_document

    return as_document(state.hbm)


def unit_table(machine: Machine) -> Columns:
    """Return one row per unit: kind, parameters, and the place where its operator was wired."""
    units = machine.unit_facts
    return {
        "unit": _numbers(unit.number for unit in units),
        "name": _texts(unit.name for unit in units),
        "operator": _texts(unit.operator for unit in units),
        "kind": _texts(unit.kind for unit in units),
        "file": _texts(unit.place.file for unit in units),
        "line": _numbers(unit.place.line for unit in units),
        "flops_per_cycle": _numbers(unit.flops_per_cycle for unit in units),
    }


def channel_table(machine: Machine) -> Columns:
    """Return one row per channel: its ends, depth and type of elements."""
    channels = machine.channel_facts
    return {
        "channel": _numbers(channel.number for channel in channels),
        "name": _texts(channel.name for channel in channels),
        "reader": _texts(channel.option for channel in channels),
        "depth": _numbers(channel.depth for channel in channels),
        "forward_cycles": _numbers(channel.forward_cycles for channel in channels),
        "backward_cycles": _numbers(channel.backward_cycles for channel in channels),
        "producer": _numbers(channel.producer for channel in channels),
        "consumer": _numbers(channel.consumer for channel in channels),
        "expected": _numbers(_static_count(edge.type) for edge in machine.plan.edges),
        "carries": _texts(channel.carries for channel in channels),
    }


def column_table() -> Columns:
    """Return one row per column of a table: its unit and its meaning."""
    rows = [(table, column) for table, columns in TABLES.items() for column in columns]
    return {
        "table": _texts(table for table, _ in rows),
        "column": _texts(column for _, column in rows),
        "unit": _texts(FIELDS[column].unit for _, column in rows),
        "meaning": _texts(FIELDS[column].meaning for _, column in rows),
    }


def state_table(state: RunState, served: Mapping[int, int], next_place: int) -> Columns:
    """Return one row per unit: its clock and its wait.

    ``next_place``: rows of the log from this one on happened after the state.
    """
    units = state.units
    return {
        "unit": _numbers(unit.number for unit in units),
        "cycle": _numbers(unit.cycle for unit in units),
        "busy_cycles": _numbers(unit.busy_cycles for unit in units),
        "flops": _numbers(unit.flops for unit in units),
        "finished": np.array([unit.finished for unit in units], np.bool_),
        **_wait_columns(state),
        **_cause_columns(state, served),
        "next_place": np.full(len(units), next_place, np.int64),
    }


def _wait_columns(state: RunState) -> Columns:
    units = state.units
    waits = [unit.wait for unit in units]
    wanted, held = dict(state.on_chip.requests), dict(state.on_chip.held or ())
    return {
        "waits_for": _texts("" if wait is None else wait.operation for wait in waits),
        "any_of": np.array([wait is not None and wait.any_of for wait in waits], np.bool_),
        "wanted_bytes": _numbers(wanted.get(unit.number, 0) for unit in units),
        "held_bytes": _numbers(held.get(unit.number, 0) for unit in units),
        "since_cycle": _numbers(-1 if wait is None else wait.since_cycle for wait in waits),
    }


def _cause_columns(state: RunState, served: Mapping[int, int]) -> Columns:
    waits = open_waits(state)
    return {
        "cause": _texts("" if wait is None else wait.cause for wait in waits),
        "channel": _numbers(
            -1 if wait is None or wait.channel is None else wait.channel for wait in waits
        ),
        "requests": _numbers(
            served.get(unit.number, 0) if wait is not None and wait.cause is Cause.HBM else 0
            for unit, wait in zip(state.units, waits, strict=True)
        ),
    }


def waiting_table(state: RunState, plan: Plan) -> Columns:
    """Return one row for each channel that a parked unit waits for."""
    loops = find_stuck(state).cores
    in_loop = {unit.number for loop in loops for unit in loop}
    of_loops = channels_of(state, chain.from_iterable(loops))
    expected = expected_of(plan, state, of_loops) if loops else {}
    table: dict[str, list[object]] = {column: [] for column in TABLES["waiting"]}
    for unit in state.units:
        wait = unit.wait
        if wait is None:
            continue
        for channel in (state.channels[number] for number in wait.channels):
            row = (
                unit.number,
                channel.number,
                channel.taken,
                channel.held,
                -1 if channel.closed_cycle is None else channel.closed_cycle,
                *_expected_columns(expected[channel.number] if unit.number in in_loop else None),
                *(wait.stops or (-1, -1)),
            )
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    texts = ("in_all", "shape", "feedback")
    return {
        name: _texts(values) if name in texts else _numbers(values)
        for name, values in table.items()
    }


def _expected_columns(expected: Expected | None) -> tuple[str, str, int, str]:
    if expected is None:
        return "", "", -1, ""
    place = expected.feedback
    feedback = "" if place is None else f"{place.file}:{place.line}"
    return str(expected.in_all), expected.shape, expected.per_output or -1, feedback


def _static_count(stream: StreamType) -> int:
    """Return the elements of a stream, or -1 if they depend on data."""
    if all(isinstance(dim, int) for dim in stream.shape):
        return math.prod(dim for dim in stream.shape if isinstance(dim, int))
    return -1


def _numbers(values: Iterable[object]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _texts(values: Iterable[object]) -> np.ndarray:
    return np.array(list(values), dtype=np.object_)

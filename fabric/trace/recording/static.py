"""Columns of the tables that describe a run and its state, as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fabric.deadlock.cause import channels_of, find_stuck
from fabric.log.rows import LONG_COLUMNS
from fabric.state.expected import Expected, expected_of
from fabric.state.open_waits import open_waits
from fabric.telling.causes import Cause
from fabric.telling.vocabulary import FIELDS, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fabric.machine.machine import Machine
    from fabric.state.run_state import RunState
    from fabric.values.stream_type import StreamType
    from fabric.wiring.elaborate import Plan

__all__ = [
    "channel_table",
    "column_table",
    "pending_table",
    "state_table",
    "unit_table",
    "waiting_table",
]

Table: TypeAlias = dict[str, np.ndarray]


def unit_table(machine: Machine) -> Table:
    """Return one row a unit: what it is and where its operator was wired."""
    units = machine.fixed.units
    return {
        "unit": _numbers(unit.number for unit in units),
        "name": _texts(unit.name for unit in units),
        "operator": _texts(unit.operator for unit in units),
        "kind": _texts(unit.kind for unit in units),
        "file": _texts(unit.place.file for unit in units),
        "line": _numbers(unit.place.line for unit in units),
        "flops_per_cycle": _numbers(unit.flops_per_cycle for unit in units),
    }


def channel_table(machine: Machine) -> Table:
    """Return one row a channel: its ends, its depth and what it carries."""
    fixed, channels, edges = machine.fixed.channels, machine.channels, machine.plan.edges
    return {
        "channel": _numbers(channel.number for channel in fixed),
        "name": _texts(channel.name for channel in fixed),
        "reader": _texts(channel.option for channel in fixed),
        "depth": _numbers(channel.depth for channel in channels),
        "forward_cycles": _numbers(channel.forward_cycles for channel in channels),
        "backward_cycles": _numbers(channel.backward_cycles for channel in channels),
        "producer": _numbers(channel.producer for channel in fixed),
        "consumer": _numbers(channel.consumer for channel in fixed),
        "expected": _numbers(_static_count(edge.type) for edge in edges),
        "carries": _texts(channel.carries for channel in fixed),
    }


def column_table() -> Table:
    """Return one row a column of a table: its unit and its meaning."""
    rows = [(table, column) for table, columns in TABLES.items() for column in columns]
    return {
        "table": _texts(table for table, _ in rows),
        "column": _texts(column for _, column in rows),
        "unit": _texts(FIELDS[column].unit for _, column in rows),
        "meaning": _texts(FIELDS[column].meaning for _, column in rows),
    }


def pending_table(rows: Sequence[tuple[int, ...]]) -> Table:
    """Return one row for each element that is sent and not dequeued; -1 for what is to come."""
    columns = np.array(rows, np.int64).reshape(-1, len(LONG_COLUMNS)).T
    return dict(zip(LONG_COLUMNS, np.ascontiguousarray(columns), strict=True))


def state_table(state: RunState, served: Mapping[int, int], next_order: int) -> Table:
    """Return one row a unit: its clock, and what it waits for.

    Args:
        state: of the run.
        served: requests of the bursts under way that the HBM has served, by unit.
        next_order: the number of the next operation of any unit: what bears that number or a
            later one happened after this, as did what ended after the unit's clock.
    """
    units = state.units
    return {
        "unit": _numbers(unit.number for unit in units),
        "cycle": _numbers(unit.cycle for unit in units),
        "busy_cycles": _numbers(unit.busy_cycles for unit in units),
        "flops": _numbers(unit.flops for unit in units),
        "finished": np.array([unit.finished for unit in units], np.bool_),
        **_parked(state),
        **_stalled(state, served),
        "next_order": np.full(len(units), next_order, np.int64),
    }


def _parked(state: RunState) -> Table:
    """Return what each unit is parked at, if it is, and its bytes of the on-chip memory."""
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


def _stalled(state: RunState, served: Mapping[int, int]) -> Table:
    """Return why each unit is behind, if it is, and what was served of its burst."""
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


def waiting_table(state: RunState, plan: Plan) -> Table:
    """Return one row for each channel that a parked unit waits for."""
    loops = find_stuck(state).cores
    in_loop = {unit.number for loop in loops for unit in loop}
    of_loops = channels_of(state, chain.from_iterable(loops))
    told = expected_of(plan, state, of_loops) if loops else {}
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
                *_told(told[channel.number] if unit.number in in_loop else None),
                *(wait.stops or (-1, -1)),
            )
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    texts = ("in_all", "shape", "feedback")
    return {
        name: _texts(values) if name in texts else _numbers(values)
        for name, values in table.items()
    }


def _told(expected: Expected | None) -> tuple[str, str, int, str]:
    """Return what the shapes tell of a channel, where anybody asked them."""
    if expected is None:
        return "", "", -1, ""
    place = expected.feedback
    feedback = "" if place is None else f"{place.file}:{place.line}"
    return str(expected.in_all), expected.shape, expected.per_output or -1, feedback


def _static_count(stream: StreamType) -> int:
    """Return how many elements a stream has, or -1 where data decide."""
    if all(isinstance(dim, int) for dim in stream.shape):
        return math.prod(dim for dim in stream.shape if isinstance(dim, int))
    return -1


def _numbers(values: Iterable[object]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _texts(values: Iterable[object]) -> np.ndarray:
    return np.array(list(values), dtype=np.object_)

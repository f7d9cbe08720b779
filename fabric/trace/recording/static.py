"""Columns of the tables that describe a machine and its state, as numpy arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.deadlock.tokens import Tokens
from fabric.deadlock.waits import find_stuck
from fabric.engine.unit import ComputeUnit
from fabric.runs.accounting import open_waits
from fabric.telling.vocabulary import FIELDS, TABLES
from fabric.trace.recording.rows import LONG_COLUMNS
from fabric.trace.recording.traced import TracedChannel

if TYPE_CHECKING:
    from fabric.engine.channel import Channel
    from fabric.machine.machine import Machine
    from fabric.values.stream_type import StreamType, ValueType

__all__ = [
    "channel_table",
    "column_table",
    "pending_table",
    "state_table",
    "unit_table",
    "waiting_table",
]

Table: TypeAlias = dict[str, NDArray[Any]]


def unit_table(machine: Machine) -> Table:
    """Return one row a unit: what it is and where its operator was wired."""
    units, nodes = machine.units, machine.plan.nodes
    return {
        "unit": _numbers(unit.index for unit in units),
        "name": _texts(unit.name for unit in units),
        "operator": _texts(type(node.operator).__name__ for node in nodes),
        "kind": _texts(unit.kind for unit in units),
        "file": _texts(unit.place.file for unit in units),
        "line": _numbers(unit.place.line for unit in units),
        "flops_per_cycle": _numbers(
            unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0 for unit in units
        ),
    }


def channel_table(machine: Machine) -> Table:
    """Return one row a channel: its ends, its depth and what it carries."""
    channels = machine.channels
    types = [edge.producer.outputs[edge.output].type for edge in machine.plan.edges]
    return {
        "channel": np.arange(len(channels), dtype=np.int64),
        "name": _texts(channel.name for channel in channels),
        "reader": _texts(edge.key for edge in machine.plan.edges),
        "depth": _numbers(channel.depth for channel in channels),
        "producer": _numbers(channel.producer.index for channel in channels),
        "consumer": _numbers(channel.consumer.index for channel in channels),
        "expected": _numbers(map(_static_count, types)),
        "carries": _texts(_kind(each.value) for each in types),
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


def pending_table(machine: Machine) -> Table:
    """Return one row for each element that is sent and not dequeued; -1 for what is to come."""
    rows = [
        row
        for channel in machine.channels
        if channel.queue and isinstance(channel, TracedChannel)
        for row in channel.pending
    ]
    columns = np.array(rows, np.int64).reshape(-1, len(LONG_COLUMNS)).T
    return dict(zip(LONG_COLUMNS, np.ascontiguousarray(columns), strict=True))


def state_table(machine: Machine, next_order: int) -> Table:
    """Return one row a unit: its clock, and what it waits for.

    ``next_order`` is the number of the next operation of any unit: what bears that number or a
    later one happened after this, as did what ended after the unit's clock.
    """
    units = machine.units
    waits = [unit.wait for unit in units]
    still = open_waits(machine)
    number = {channel: index for index, channel in enumerate(machine.channels)}
    wanted = dict(machine.on_chip.requests)
    held = machine.on_chip.held_by
    memory = machine.off_chip
    return {
        "unit": _numbers(unit.index for unit in units),
        "cycle": _numbers(unit.now for unit in units),
        "busy_cycles": _numbers(unit.busy_cycles for unit in units),
        "flops": _numbers(unit.flops for unit in units),
        "finished": np.array([unit.finished for unit in units], np.bool_),
        "waits_for": _texts("" if wait is None else wait.operation for wait in waits),
        "any_of": np.array([wait is not None and wait.any_of for wait in waits], np.bool_),
        "wanted_bytes": _numbers(wanted.get(unit, 0) for unit in units),
        "held_bytes": _numbers(held.get(unit, 0) for unit in units),
        "since_cycle": _numbers(-1 if wait is None else wait.since_cycle for wait in waits),
        "cause": _texts("" if wait is None else wait.cause for wait in still),
        "channel": _numbers(
            -1 if wait is None or wait.channel is None else number[wait.channel] for wait in still
        ),
        "requests": _numbers(
            memory.served(unit)
            if memory is not None and wait is not None and wait.cause == "hbm"
            else 0
            for unit, wait in zip(units, still, strict=True)
        ),
        "next_order": np.full(len(units), next_order, np.int64),
    }


def waiting_table(machine: Machine) -> Table:
    """Return one row for each channel that a parked unit waits for."""
    number = {channel: index for index, channel in enumerate(machine.channels)}
    loops = find_stuck(machine).cores
    in_loop = {unit for loop in loops for unit in loop}
    tokens = Tokens(machine) if loops else None
    table: dict[str, list[Any]] = {column: [] for column in TABLES["waiting"]}
    for unit in machine.units:
        wait = unit.wait
        for channel in () if wait is None else wait.channels:
            known = tokens if unit in in_loop else None
            row = (
                unit.index,
                number[channel],
                channel.elements,
                len(channel.queue),
                -1 if channel.closed_cycle is None else channel.closed_cycle,
                *_told(channel, known),
                *((wait and wait.stops) or (-1, -1)),
            )
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    texts = ("in_all", "shape", "feedback")
    return {
        name: _texts(values) if name in texts else _numbers(values)
        for name, values in table.items()
    }


def _told(channel: Channel, tokens: Tokens | None) -> tuple[str, str, int, str]:
    """Return what the shapes tell of a channel; nothing without ``tokens``."""
    if tokens is None:
        return "", "", -1, ""
    state, place = tokens.state(channel), tokens.feedback(channel)
    feedback = "" if place is None else f"{place.file}:{place.line}"
    return state.expected, state.shape, tokens.per_output(channel) or -1, feedback


def _static_count(stream: StreamType) -> int:
    """Return how many elements a stream has, or -1 where data decide."""
    if all(isinstance(dim, int) for dim in stream.shape):
        return math.prod(dim for dim in stream.shape if isinstance(dim, int))
    return -1


def _kind(value: ValueType) -> str:
    """Return what a stream carries: tile, selector, buffer, bool or tuple."""
    return type(value).__name__.removesuffix("Type").lower()


def _numbers(values: Any) -> NDArray[Any]:
    return np.array(list(values), np.int64)


def _texts(values: Any) -> NDArray[Any]:
    return np.array(list(values), dtype=np.object_)

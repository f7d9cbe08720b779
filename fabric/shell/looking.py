"""What the prompt of a held run shows: units, channels, values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.runs.accounting import unit_counters
from fabric.state.open_waits import open_waits
from fabric.telling.causes import COUNTED, Cause
from fabric.telling.errors import ConfigurationError
from fabric.telling.sheet import Rows
from fabric.telling.wording import visible
from fabric.terminal.tables import print_table
from fabric.trace.printing import moment
from fabric.values.value import BufferReference, Tile

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.runs.stepped import SteppedRun
    from fabric.state.open_waits import OpenWait
    from fabric.state.run_state import RunState, UnitState

__all__ = ["print_channel", "print_channels", "print_tile", "print_unit", "print_where"]

_ROWS: Final = 30
_UNIT: Final = ("unit", "since", "wired at", "is")


def print_where(run: SteppedRun, console: Console) -> None:
    """Print what units do: first those that work, then those that wait, the latest first."""
    state = run.state
    waits = open_waits(state)
    going = [unit for unit in state.units if not unit.finished]
    going.sort(key=lambda unit: (unit.wait is not None, -unit.cycle))
    waiting = state.waiting
    ended = len(state.units) - len(going)
    console.print(
        f"cycle {run.cycle:,}; units: {len(going) - waiting:,} busy, {waiting:,} waiting, "
        f"{ended:,} ended; elements: {state.elements:,} taken, "
        f"{sum(channel.held for channel in state.channels):,} held",
        soft_wrap=True,
    )
    rows = [_unit_row(state, unit, waits[unit.number]) for unit in going]
    if rows:
        print_table(Rows(_UNIT, rows, _ROWS), console)


def print_unit(run: SteppedRun, console: Console, name: str) -> None:
    """Print one unit, where its cycles went, and its channels.

    Raises:
        ConfigurationError: there is no such unit.
    """
    unit, state = run.unit(name), run.state
    wait = open_waits(state)[unit.number]
    print_table(Rows(_UNIT, [_unit_row(state, unit, wait)]), console)
    counters = unit_counters(state)[unit.number]
    spent = [(cause.label, getattr(counters, cause.column)) for cause in (*COUNTED, Cause.IDLE)]
    cycles = ", ".join(f"{cause} {cycles:,}" for cause, cycles in spent if cycles)
    console.print(f"cycles: {cycles or 'none so far'}", soft_wrap=True)
    its = [each for each in state.channels if unit.number in (each.producer, each.consumer)]
    print_table(moment.channels_table(its, _ROWS), console)


def print_channel(run: SteppedRun, console: Console, name: str) -> None:
    """Print one channel and what it holds.

    Raises:
        ConfigurationError: there is no such channel.
    """
    channel, held = run.channel(name), run.held(name)
    print_table(moment.channels_table([channel]), console)
    if channel.closed_cycle is not None:
        console.print(f"its stream ended at cycle {channel.closed_cycle:,}", soft_wrap=True)
    if held:
        rows = [
            (
                str(each.number),
                _text(each.value),
                each.stop,
                each.sent_cycle,
                "on links" if each.visible_cycle is None else each.visible_cycle,
            )
            for each in held
        ]
        titles = ("element", "value", "stop", "sent", "visible")
        print_table(Rows(titles, rows, _ROWS), console)


def print_channels(run: SteppedRun, console: Console) -> None:
    """Print all channels, those that hold most first."""
    fullest = sorted(run.state.channels, key=lambda each: -each.held)
    print_table(moment.channels_table(fullest, _ROWS), console)


def print_tile(run: SteppedRun, console: Console, name: str, number: int | None) -> None:
    """Print the value of an element that a channel holds, with its data where it has any.

    Raises:
        ConfigurationError: there is no such channel, or it does not hold the element.
    """
    held = run.held(name)
    found = [each for each in held if number in (None, each.number)]
    if not found:
        there = ", ".join(str(each.number) for each in held[:_ROWS])
        raise ConfigurationError(
            f"{name} holds no element{'' if number is None else f' {number}'}: expected "
            + (f"one of {there}" if held else "a channel that holds one")
        )
    value = found[0].value
    console.print(f"element {found[0].number}: {_text(value)}", soft_wrap=True)
    tiles = [value]
    if isinstance(value, BufferReference):
        tiles = [tile for tile, _ in value.elements]
    for tile in tiles[:_ROWS]:
        if isinstance(tile, Tile):
            data = "no data in timing mode"
            if tile.data is not None:
                # Own element types are written like the others.
                floats = tile.data.dtype.kind not in "iub"
                numbers = tile.data.astype(np.float32) if floats else tile.data
                data = np.array2string(numbers, console.width, precision=4)
            console.print(data, soft_wrap=True)


def _unit_row(
    state: RunState, unit: UnitState, wait: OpenWait | None
) -> tuple[str, int | None, str, str]:
    name = visible(unit.name)
    place = f"{Path(unit.place.file).name}:{unit.place.line}"
    if unit.finished:
        return name, unit.cycle, place, "idle, at its end"
    if unit.wait is not None and wait is None:
        return name, unit.cycle, place, "waits for its turn"
    if wait is None or unit.wait is None:
        return name, None, place, Cause.BUSY.label
    awaited = wait.cause.awaits
    peers = [
        each.producer if wait.cause.peer == "producer" else each.consumer
        for each in (state.channels[number] for number in unit.wait.channels)
    ]
    if peers:
        awaited = " or ".join(visible(state.units[peer].name) for peer in peers[:3])
        awaited += f" or {len(peers) - 3} more" if len(peers) > 3 else ""
    return name, wait.since_cycle, place, f"{wait.cause.label}, waits for {awaited}"


def _text(value: object) -> str:
    return visible(repr(value)) if value.__class__ is not bool else str(value)

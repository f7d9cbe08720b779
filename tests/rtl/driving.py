"""Sends tokens through one hardware module until it is done or reports a fault."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

# Any: amaranth has no types.
from typing import Any

import numpy as np
from amaranth import Module, Signal
from amaranth.sim import Simulator

from operators.rtl import tools
from operators.rtl.blocks import Unit, Widths, widths
from operators.rtl.hardware import Design
from operators.rtl.netlist import Channel, Instance, Netlist

_TOKEN = re.compile(
    r"(?:-(?P<empty>\d+)|(?P<number>\d+)|(?P<rows>\d+)x(?P<cols>\d+)"
    r"(?:\((?P<valid_rows>\d+)x(?P<valid_cols>\d+)\))?|)"
    r"(?P<memory>m?)(?:#(?P<control>\d+))?(?P<stop>\.*)"
)


def tokens(text: str) -> list[int]:
    """Return the bits of each token of a stream.

    ``7`` is a number, ``2x3`` a tile, ``2x3m`` a tile in memory, ``2x3(1x3)`` a tile with one valid
    row, and ``-0.`` a bare stop with its empty dimension. ``#7`` sets ``control``. Each dot closes
    a dimension.
    """
    bits = []
    for each in text.split():
        match = _TOKEN.fullmatch(each)
        assert match is not None, each
        said = match.groupdict()
        rows, cols = (1, 1) if said["number"] else (said["rows"], said["cols"])
        fields = {
            "level": len(said["stop"]),
            "bare": said["empty"] is not None,
            "empty": said["empty"] or 0,
            "rows": rows or 0,
            "cols": cols or 0,
            "valid_rows": said["valid_rows"] or rows or 0,
            "valid_cols": said["valid_cols"] or cols or 0,
            "in_memory": said["memory"] == "m",
            "control": said["number"] or said["control"] or 0,
        }
        bits.append(widths().packed(**{name: int(value) for name, value in fields.items()}))
    return bits


def sent_by(
    unit: Unit, inputs: Sequence[list[int]], parameters: Mapping[str, int]
) -> list[int] | None:
    """Return the tokens that a unit sends to its first output; None if it reports a fault."""
    m = Module()
    m.submodules.unit = unit.m
    # A unit may be combinational, but the simulator needs a clock.
    beats = Signal()
    m.d.sync += beats.eq(~beats)
    for name, port in unit.parameters.items():
        m.d.comb += port.eq(parameters.get(name, 0))
    waiting = [list(each) for each in inputs]
    sent: list[int] = []
    faults: list[int] = []

    async def drive(context: Any) -> None:
        # A store of tokens is idle for 256 cycles.
        for _ in range(330):
            for port, value in _ports(unit, waiting):
                context.set(port, int(value))
            faults.append(context.get(unit.fault))
            for output in unit.outputs[:1]:
                sent.extend([context.get(output.token.as_value())] * context.get(output.valid))
            if faults[-1] or context.get(unit.done):
                return
            taken = [bool(context.get(each.take)) for each in unit.inputs]
            for left, is_taken in zip(waiting, taken, strict=True):
                del left[:is_taken]
            await context.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return None if any(faults) else sent


def _ports(unit: Unit, waiting: Sequence[list[int]]) -> Iterator[tuple[Any, int]]:
    for each, left in zip(unit.inputs, waiting, strict=True):
        yield each.valid, bool(left)
        yield each.token.as_value(), left[0] if left else 0
        yield each.end, len(left) < 2
        yield each.final, len(left) == 1
    for output in unit.outputs:
        yield output.ready, 1
    if unit.off_chip:
        yield unit.answer, 1


def beside(designs: Sequence[Design]) -> Design:
    """Combine several designs side by side, for one build and one run."""
    units: list[Instance] = []
    channels: list[Channel] = []
    expected = []
    for each in designs:
        first, first_unit = len(channels), len(units)
        units += [
            replace(
                unit,
                inputs=[first + number for number in unit.inputs],
                outputs=[first + number for number in unit.outputs],
            )
            for unit in each.netlist.units
        ]
        channels += [
            channel._replace(
                producer=channel.producer + first_unit, consumer=channel.consumer + first_unit
            )
            for channel in each.netlist.channels
        ]
        rows = each.expected.copy()
        rows[:, 0] += first
        expected.append(rows)
    widest = Widths(*map(max, *(each.netlist.widths[:-1] for each in designs)))
    # The second tile of a tuple, or three numbers.
    control = max(widest.control, 4 * widest.size + 1, 3 * widest.number)
    netlist = Netlist(units, channels, widest._replace(control=control))
    return Design(netlist, np.concatenate(expected), max(each.cycles for each in designs))


def linted(folder: Path, *files: str) -> str:
    """Return the warnings of Verilator on files in ``folder``."""
    command = [tools.verilator(), "--lint-only", "-Wall", "-Wno-MULTITOP", "--quiet", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr

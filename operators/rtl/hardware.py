"""From a program to hardware, and from hardware to a comparison."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from fabric import Program, ProgramError, simulate
from operators.rtl import apart, tools
from operators.rtl.comparing import Comparison, compared, logged, transfers_of
from operators.rtl.cost import Cost, cost_of
from operators.rtl.netlist import Channel, Instance, Netlist, netlist
from operators.rtl.outside import Outside
from operators.rtl.verilog import Written, modules_of, testbench, top

__all__ = ["Design", "beside", "cost", "design", "run", "write"]

_MORE = 64
"""Cycles for which the testbench goes on after the fabric's run."""

_TOGETHER: Final = 50
"""Channels of what is built with top and testbench; more take Verilator minutes."""


@dataclass(frozen=True)
class Design:
    """Hardware of a program, and what the fabric says of its run.

    Attributes:
        netlist: units and channels.
        expected: the fabric's transfers; see ``comparing.transfers_of``.
        cycles: of the fabric's run.
    """

    netlist: Netlist
    expected: Any
    cycles: int


def design(program: Program, **options: Any) -> Design:
    """Run ``program`` in timing mode, on channels of wires, and return its hardware.

    Raises:
        ProgramError: its hardware has no channels of wires, or links that these share, its run
            does not complete, or one of its operators has no module.
    """
    if program.hardware.channel.interval_cycles != 1:
        raise ProgramError(
            f"program {program.name!r} has channels with interval_cycles = 0: expected 1, which is "
            "what wires can do, as in --hardware wires"
        )
    mesh = program.hardware.network
    if mesh is not None and mesh.limits:
        raise ProgramError(
            f"program {program.name!r} is on a mesh whose links have a limit: expected links "
            "without one, since the hardware has a channel of its own for each"
        )
    outside = Outside(program)
    if outside.is_needed:
        options["observers"] = [outside]
    with tempfile.TemporaryDirectory() as folder:
        report = simulate(program, mode="timing", trace="events", log_dir=folder, **options)
        if report.status != "completed" or report.cycles is None:
            raise ProgramError(
                f"program {program.name!r} ends with status {report.status}: expected a run that "
                "completes"
            )
        trace = report.trace()
        return Design(netlist(program, trace, outside), transfers_of(trace), report.cycles)


def write(designed: Design, folder: Path) -> Written:
    """Write modules, top and testbench into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = modules_of(designed.netlist)
    tools.verilog_of(folder, written.rtlil)
    (folder / "top.sv").write_text(top(designed.netlist, written))
    bench, latencies, tokens = testbench(designed.netlist, designed.cycles + _MORE)
    (folder / "testbench.sv").write_text(bench)
    (folder / "latencies.hex").write_text(latencies)
    (folder / "tokens.hex").write_text(tokens)
    return written


def run(designed: Design, written: Written, folder: Path) -> Comparison:
    """Build and run what ``write`` has written; compare it with the fabric's run."""
    if len(designed.netlist.channels) > _TOGETHER:
        cycles = designed.cycles + _MORE
        simulator = apart.simulator(designed.netlist, written, folder, cycles)
    else:
        simulator = tools.compiled(folder)
    log = tools.simulate(folder, simulator)
    return compared(designed.expected, logged(log), designed.netlist, designed.cycles)


def beside(designs: Sequence[Design]) -> Design:
    """Return several designs as one, side by side: they are built and run at once."""
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
    return Design(
        Netlist(units, channels), np.concatenate(expected), max(each.cycles for each in designs)
    )


def cost(designed: Design, folder: Path, *, places: bool) -> Cost:
    """Return what the modules take that ``write`` has written, placed and routed or not."""
    return cost_of(designed.netlist, folder, places=places)

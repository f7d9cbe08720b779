"""Hardware of a program, and its comparison with the run: the cycle of each transfer."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from fabric import Program, ProgramError, Trace, simulate
from fabric.extend import RegisterDescription
from operators.rtl import apart, tools
from operators.rtl.netlist import Netlist, Outside, netlist
from operators.rtl.tools import Cost, cost_of
from operators.rtl.verilog import Written, modules_of, testbench, top

_MORE = 64
"""Cycles that the testbench runs longer than the fabric."""

_REGISTERS: Final = RegisterDescription(wait_cycles=1, choice_cycles=1, end_cycles=1, cost_cycles=2)

_TOGETHER: Final = 50
"""The most channels for one build with top and testbench. For more, Verilator takes minutes."""


@dataclass(frozen=True)
class Design:
    """The hardware of a program, the transfers of its run on the fabric, and the run's cycles."""

    netlist: Netlist
    expected: Any
    cycles: int


def design(program: Program, **options: Any) -> Design:
    """Run ``program`` in timing mode and return its hardware.

    Raises:
        ProgramError: the channels are not wires, they share links, the run does not complete, or an
            operator has no module.
    """
    if program.hardware.channel.interval_cycles != 1:
        raise ProgramError(
            f"program {program.name!r} has channels with interval_cycles = 0: expected 1, which is "
            "what wires can do, as in --hardware wires"
        )
    if program.hardware.registers not in (RegisterDescription(), _REGISTERS):
        raise ProgramError(
            f"program {program.name!r} has some registers: expected none, or those of --hardware "
            "registered"
        )
    mesh = program.hardware.network
    if mesh is not None and mesh.limits:
        raise ProgramError(
            f"program {program.name!r} is on a mesh with link limits: expected links "
            "without limits, since the hardware has a private link for each channel"
        )
    outside = Outside(program)
    with tempfile.TemporaryDirectory() as folder:
        options |= {"observers": [outside], "log_dir": folder}
        report = simulate(program, mode="timing", trace="events", **options)
        if report.status != "completed" or report.cycles is None:
            raise ProgramError(
                f"program {program.name!r} ends with status {report.status}: expected a run that "
                "completes"
            )
        trace = report.trace()
        hardware = netlist(program, trace, outside, report.cycles + _MORE)
        return Design(hardware, transfers_of(trace), report.cycles)


def write(designed: Design, folder: Path) -> Written:
    folder.mkdir(parents=True, exist_ok=True)
    written = modules_of(designed.netlist)
    (folder / "modules.sv").write_text(written.text)
    (folder / "top.sv").write_text(top(designed.netlist, written))
    bench, latencies, tokens = testbench(designed.netlist, designed.cycles + _MORE)
    (folder / "testbench.sv").write_text(bench)
    (folder / "latencies.hex").write_text(latencies)
    (folder / "tokens.hex").write_text(tokens)
    return written


@contextlib.contextmanager
def _built_whole(folder: Path) -> Iterator[None]:
    """Remove the files that tools made in ``folder`` if they are interrupted.

    Otherwise ``make`` would use an incomplete object file of an earlier ``obj_dir``.
    """
    before = set(folder.iterdir()) - {folder / "obj_dir"}
    try:
        yield
    except KeyboardInterrupt:
        for built in set(folder.iterdir()) - before:
            if built.is_dir():
                shutil.rmtree(built, ignore_errors=True)
            else:
                built.unlink(missing_ok=True)
        raise


def run(designed: Design, written: Written, folder: Path) -> Comparison:
    with _built_whole(folder):
        if len(designed.netlist.channels) > _TOGETHER:
            cycles = designed.cycles + _MORE
            simulator = apart.simulator(designed.netlist, written, folder, cycles)
        else:
            simulator = tools.compiled(folder)
        log = tools.simulate(folder, simulator)
    return compared(designed.expected, logged(log), designed.netlist, designed.cycles)


def cost(designed: Design, folder: Path, *, places: bool) -> Cost:
    """Return the cost of the modules that ``write`` has written. ``places`` places and routes."""
    with _built_whole(folder):
        return cost_of(designed.netlist, folder, places=places)


_SENT, _TAKEN, _FAULT = range(3)
"""Kinds of rows in a log."""

NEVER: Final = -1


class Difference(NamedTuple):
    """The first difference between hardware and fabric.

    Attributes:
        unit: the sender or the receiver of the element.
        element: its number on the channel.
        what: ``sent``, ``taken``, ``stop``, or ``fault`` for an input that a module cannot handle.
        fabric, hardware: the cycle, or the level of the stop. The cycle -1 means never. The level
            -1 - n means a bare stop of level n.
        cycle: the earlier cycle of the two.
    """

    unit: str
    channel: str
    element: int
    what: str
    fabric: int
    hardware: int
    cycle: int

    def __str__(self) -> str:
        fabric, hardware = (
            "never" if value == NEVER else f"{value:,}" for value in (self.fabric, self.hardware)
        )
        if self.what == "fault":
            return f"{self.unit} gets an input that its module refuses, in cycle {self.cycle:,}"
        unit = "stop" if self.what == "stop" else "cycle"
        return (
            f"{self.unit}: element {self.element:,} of {self.channel}, {self.what}: "
            f"{unit} {fabric} in the fabric, {hardware} in hardware"
        )


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        transfers: the number of elements and bare stops in the fabric's run.
        channels: the number of channels.
        first_difference: None if the runs are equal.
    """

    transfers: int
    channels: int
    cycles: int
    first_difference: Difference | None

    @property
    def equal(self) -> bool:
        """Whether all transfers are in the same cycles."""
        return self.first_difference is None

    def __str__(self) -> str:
        if self.first_difference is None:
            transfers = _counted(self.transfers, "transfer")
            return f"equal: {transfers} on {_counted(self.channels, 'channel')}"
        return f"different: {self.first_difference}"

    def as_json(self) -> dict[str, object]:
        difference = self.first_difference
        return {
            "equal": self.equal,
            "transfers": self.transfers,
            "channels": self.channels,
            "cycles": self.cycles,
            "first_difference": None if difference is None else difference._asdict(),
        }


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def transfers_of(trace: Trace) -> Any:
    """Return channel, element, cycle sent, cycle taken and stop of each transfer, in that order."""
    rows = trace.query(
        "SELECT channel, element, sent_cycle, coalesce(taken_cycle, -1), "
        "CASE WHEN bare THEN -1 - stop ELSE stop END FROM transfers ORDER BY channel, element"
    ).rows()
    return np.array(rows, np.int64).reshape(-1, 5)


def logged(log: Path) -> Any:
    """Return the rows of a testbench's log: kind, channel or unit, cycle and stop."""
    return np.fromstring(log.read_text(), np.int64, sep=" ").reshape(-1, 4)


def compared(expected: Any, rows: Any, netlist: Netlist, cycles: int) -> Comparison:
    channels = netlist.channels
    differences = []
    for number, channel in enumerate(channels):
        of_fabric = expected[expected[:, 0] == number]
        logged_rows = rows[rows[:, 1] == number]
        sent, taken = (logged_rows[logged_rows[:, 0] == kind] for kind in (_SENT, _TAKEN))
        names = (netlist.units[channel.producer].name, netlist.units[channel.consumer].name)
        columns = (
            ("sent", 0, of_fabric[:, 2], sent[:, 2]),
            ("stop", 0, of_fabric[:, 4], sent[:, 3]),
            ("taken", 1, of_fabric[of_fabric[:, 3] >= 0, 3], taken[:, 2]),
        )
        for what, end, in_fabric, in_hardware in columns:
            difference = _first(in_fabric, in_hardware)
            if difference is None:
                continue
            element, fabric, hardware = difference
            # A difference of stops counts as one in the cycle in which the element was sent.
            stamps = columns[0][2:] if what == "stop" else (in_fabric, in_hardware)
            cycle = min(int(stamp[element]) for stamp in stamps if element < len(stamp))
            differences.append(
                Difference(names[end], channel.name, element, what, fabric, hardware, cycle)
            )
    for _, unit, cycle, _ in rows[rows[:, 0] == _FAULT][:1].tolist():
        differences.append(
            Difference(netlist.units[unit].name, "", NEVER, "fault", NEVER, NEVER, cycle)
        )
    first = min(differences, key=lambda difference: difference.cycle, default=None)
    return Comparison(len(expected), len(channels), cycles, first)


def _first(fabric: Any, hardware: Any) -> tuple[int, int, int] | None:
    """Return the first element that differs, and its numbers in the fabric and in hardware."""
    for at, (ours, theirs) in enumerate(zip_longest(fabric, hardware, fillvalue=NEVER)):
        if ours != theirs:
            return at, int(ours), int(theirs)
    return None

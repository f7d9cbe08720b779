"""Hardware of a program, and its comparison with the run: the cycle of each transfer."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
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
"""Cycles that the testbench runs beyond the fabric's run."""

_REGISTERS: Final = RegisterDescription(wait_cycles=1, choice_cycles=1, end_cycles=1, cost_cycles=2)

_TOGETHER: Final = 50
"""The most channels for one build with top and testbench; more take Verilator minutes."""


@dataclass(frozen=True)
class Design:
    """Hardware of a program, and the fabric's run of the program.

    Attributes:
        expected: the fabric's transfers; see ``comparing.transfers_of``.
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
    """Write modules, top and testbench into ``folder``."""
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
    """Remove the files of tools in ``folder`` if they are interrupted.

    ``make`` would take half an object file of an earlier ``obj_dir`` for a whole one.
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
    """Build and run the files of ``write``; compare the run with the fabric's."""
    with _built_whole(folder):
        if len(designed.netlist.channels) > _TOGETHER:
            cycles = designed.cycles + _MORE
            simulator = apart.simulator(designed.netlist, written, folder, cycles)
        else:
            simulator = tools.compiled(folder)
        log = tools.simulate(folder, simulator)
    return compared(designed.expected, logged(log), designed.netlist, designed.cycles)


def cost(designed: Design, folder: Path, *, places: bool) -> Cost:
    """Return the cost of the modules that ``write`` has written, placed and routed or not."""
    with _built_whole(folder):
        return cost_of(designed.netlist, folder, places=places)


_SENT, _TAKEN, _FAULT = range(3)
"""Kinds of rows in a log."""

NEVER: Final = -1


class Difference(NamedTuple):
    """The first difference between hardware and fabric.

    Attributes:
        unit: the sender or receiver of the element.
        element: its number on the channel.
        what: ``sent``, ``taken``, ``stop``, or ``fault`` for an input that a module is not built
            for.
        fabric, hardware: the cycle, or the stop's level; -1 for never, a bare stop is below -1.
        cycle: the earlier one.
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
            "never" if each == NEVER else f"{each:,}" for each in (self.fabric, self.hardware)
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
        transfers: elements and bare stops of the fabric's run.
        channels: of the transfers.
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
    found = trace.query(
        "SELECT channel, element, sent_cycle, coalesce(taken_cycle, -1), "
        "CASE WHEN bare THEN -1 - stop ELSE stop END FROM transfers ORDER BY channel, element"
    ).rows()
    return np.array(found, np.int64).reshape(-1, 5)


def logged(log: Path) -> Any:
    """Return the rows of a testbench's log: kind, channel or unit, cycle and stop."""
    return np.fromstring(log.read_text(), np.int64, sep=" ").reshape(-1, 4)


def compared(expected: Any, rows: Any, netlist: Netlist, cycles: int) -> Comparison:
    """Compare the fabric's transfers with the rows of a log."""
    channels = netlist.channels
    differences = []
    for number, channel in enumerate(channels):
        of_fabric = expected[expected[:, 0] == number]
        mine = rows[rows[:, 1] == number]
        sent, taken = mine[mine[:, 0] == _SENT], mine[mine[:, 0] == _TAKEN]
        names = (netlist.units[channel.producer].name, netlist.units[channel.consumer].name)
        columns = (
            ("sent", 0, of_fabric[:, 2], sent[:, 2]),
            ("stop", 0, of_fabric[:, 4], sent[:, 3]),
            ("taken", 1, of_fabric[of_fabric[:, 3] >= 0, 3], taken[:, 2]),
        )
        for what, end, ours, theirs in columns:
            found = _first(ours, theirs)
            if found is None:
                continue
            element, fabric, hardware = found
            stamps = [
                int(each[element])
                for each in ((of_fabric[:, 2], sent[:, 2]) if what == "stop" else (ours, theirs))
                if element < len(each)
            ]
            differences.append(
                Difference(names[end], channel.name, element, what, fabric, hardware, min(stamps))
            )
    for _, unit, cycle, _ in rows[rows[:, 0] == _FAULT][:1].tolist():
        differences.append(
            Difference(netlist.units[unit].name, "", NEVER, "fault", NEVER, NEVER, cycle)
        )
    first = min(differences, key=lambda each: each.cycle, default=None)
    return Comparison(len(expected), len(channels), cycles, first)


def _first(ours: Any, theirs: Any) -> tuple[int, int, int] | None:
    both = min(len(ours), len(theirs))
    unequal = np.flatnonzero(ours[:both] != theirs[:both])
    if unequal.size:
        at = int(unequal[0])
        return at, int(ours[at]), int(theirs[at])
    if len(ours) == len(theirs):
        return None
    longer = ours if len(ours) > both else theirs
    value = int(longer[both])
    return (both, value, NEVER) if longer is ours else (both, NEVER, value)

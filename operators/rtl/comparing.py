"""Hardware beside the fabric: the cycle of each transfer, on each channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from fabric import Trace
from operators.rtl.netlist import Netlist

__all__ = ["Comparison", "Difference", "compared", "logged", "transfers_of"]

_SENT, _TAKEN, _FAULT = range(3)
"""Kinds of rows in a log."""

NEVER: Final = -1


class Difference(NamedTuple):
    """Where hardware and fabric part.

    Attributes:
        unit: which sent or took the element.
        channel: its name.
        element: its number on the channel.
        what: ``sent``, ``taken``, ``stop``, or ``fault`` for what a module is not built for.
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
        """Say it in a sentence."""
        fabric, hardware = (
            "never" if each == NEVER else f"{each:,}" for each in (self.fabric, self.hardware)
        )
        if self.what == "fault":
            return f"{self.unit} is given what its module is not built for, in cycle {self.cycle:,}"
        unit = "stop" if self.what == "stop" else "cycle"
        return (
            f"{self.unit}: element {self.element:,} of {self.channel}, {self.what}: "
            f"{unit} {fabric} in the fabric, {hardware} in hardware"
        )


@dataclass(frozen=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        transfers: elements and bare stops of the fabric's run.
        channels: they went through.
        cycles: of the fabric's run.
        first_difference: None where there is none.
    """

    transfers: int
    channels: int
    cycles: int
    first_difference: Difference | None

    @property
    def equal(self) -> bool:
        """Whether each transfer is in the same cycle."""
        return self.first_difference is None

    def __str__(self) -> str:
        """Say it in a line."""
        if self.first_difference is None:
            transfers = _counted(self.transfers, "transfer")
            return f"equal: {transfers} on {_counted(self.channels, 'channel')}"
        return f"different: {self.first_difference}"

    def as_json(self) -> dict[str, object]:
        """Return one object."""
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
    """Compare what the fabric did with what the rows of a log say."""
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
    """Return where two columns first differ, and what they say there."""
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

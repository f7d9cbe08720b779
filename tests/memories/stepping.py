"""A DRAM channel that steps through its cycles and says which commands come too early.

It is made of what JEDEC's parameters mean, and has no part in what chooses the commands: state of
banks, buses and command slots, what a command asks of that state, and what it does to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

from fabric.graph.hardware.dram import DramOrganization, DramTiming
from tests.memories.commands import Command

__all__ = ["Rule", "Violation", "violations"]

Rule: TypeAlias = Literal[
    "rcd_read",
    "rcd_write",
    "rp",
    "ras",
    "rc",
    "rtp",
    "wr",
    "ccd_s",
    "ccd_l",
    "rrd_s",
    "rrd_l",
    "wtr_s",
    "wtr_l",
    "rtw",
    "faw",
    "rfc",
    "refi",
    "data bus",
    "row slot",
    "column slot",
    "row open",
    "row closed",
    "other row",
    "no such bank",
]
"""JEDEC's name of the time that is too short, or what else is wrong."""

_NEVER: Final = -(1 << 40)


class Violation(NamedTuple):
    """A command that may not be where it is.

    Attributes:
        rule: that it breaks.
        command: the later one of the two that do not agree; a refresh that is missing, too.
    """

    rule: Rule
    command: Command


def violations(
    commands: Iterable[Command],
    timing: DramTiming,
    organization: DramOrganization,
    *,
    drain_cycles: int | None = None,
) -> list[Violation]:
    """Return what is wrong with a log of ``commands``, in whatever order it comes.

    Args:
        commands: of all channels.
        timing: that they have to keep.
        organization: of each channel.
        drain_cycles: a refresh may begin so long after it is due; None: none is expected. After
            the last command of a channel none is.
    """
    found = []
    in_order = sorted(commands, key=attrgetter("channel", "cycle"))
    for number, of_channel in groupby(in_order, attrgetter("channel")):
        channel = _Channel(number, timing, organization)
        at = {cycle: tuple(each) for cycle, each in groupby(of_channel, attrgetter("cycle"))}
        for cycle in range(max(at) + 1):
            for command in at.get(cycle, ()):
                channel.take(command)
            if drain_cycles is not None:
                channel.expect_refresh(cycle - drain_cycles)
        found += channel.found
    return found


@dataclass(slots=True)
class _Bank:
    """What a bank remembers; cycles of what was last, of written data their end."""

    row: int | None = None
    activated: int = _NEVER
    precharged: int = _NEVER
    read: int = _NEVER
    written: int = _NEVER


@dataclass(slots=True)
class _PseudoChannel:
    """What the banks of a pseudo channel share.

    Attributes:
        bus: what each cycle of the data bus carries.
        activations: cycles of all.
        activated, reads, writes: cycle of the last one in each bank group.
    """

    bus: dict[int, Command] = field(default_factory=dict)
    activations: list[int] = field(default_factory=list)
    activated: dict[int, int] = field(default_factory=dict)
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)


class _Channel:
    """One channel of memory, walked from cycle to cycle.

    Attributes:
        found: what was wrong so far.
    """

    def __init__(self, number: int, timing: DramTiming, organization: DramOrganization) -> None:
        self._number: Final = number
        self._timing: Final = timing
        self._organization: Final = organization
        self._banks: Final = defaultdict[tuple[int, int, int], _Bank](_Bank)
        self._pseudo_channels: Final = defaultdict[int, _PseudoChannel](_PseudoChannel)
        self._row_slots: Final[set[int]] = set()
        self._column_slots: Final[set[int]] = set()
        self._refreshed = _NEVER
        self._refreshes = 0
        self.found: Final[list[Violation]] = []

    def take(self, command: Command) -> None:
        """Take a command of this cycle."""
        made_of = self._organization
        there = (
            0 <= command.pseudo_channel < made_of.pseudo_channels
            and 0 <= command.bank_group < made_of.bank_groups
            and 0 <= command.bank < made_of.banks
        )
        self._holds(there, "no such bank", command)
        bank = self._banks[command.pseudo_channel, command.bank_group, command.bank]
        pseudo = self._pseudo_channels[command.pseudo_channel]
        match command.what:
            case "activate":
                self._activate(command, bank, pseudo)
            case "precharge":
                self._holds(bank.row is not None, "row closed", command)
                self._precharge(command, [bank])
            case "precharge all":
                self._precharge(command, self._banks.values())
            case "read":
                self._read(command, bank, pseudo)
            case "write":
                self._write(command, bank, pseudo)
            case "refresh":
                self._refresh(command)

    def expect_refresh(self, due_cycle: int) -> None:
        """See that there were as many refreshes as are due up to a cycle; called for each one."""
        due = due_cycle // self._timing.refi_cycles
        if due > self._refreshes:
            missing = Command(due_cycle, self._number, "refresh")
            self.found.append(Violation("refi", missing))
            self._refreshes = due

    def _activate(self, command: Command, bank: _Bank, pseudo: _PseudoChannel) -> None:
        """Open a row: two slots, what counts from one command to the next counts to the second.

        What a bank has to have rested is over before the first slot.
        """
        timing, cycle, group = self._timing, command.cycle, command.bank_group
        self._takes(self._row_slots, (cycle - 1, cycle), "row slot", command)
        self._holds(bank.row is None, "row open", command)
        self._after(cycle - 1, bank.precharged, timing.rp_cycles, "rp", command)
        self._after(cycle, bank.activated, timing.rc_cycles, "rc", command)
        self._rested(cycle - 1, command)
        for other, before in pseudo.activated.items():
            if other == group:
                self._after(cycle, before, timing.rrd_l_cycles, "rrd_l", command)
            else:
                self._after(cycle, before, timing.rrd_s_cycles, "rrd_s", command)
        if len(pseudo.activations) >= 4:
            self._after(cycle, pseudo.activations[-4], timing.faw_cycles, "faw", command)
        bank.row = command.row
        bank.activated = pseudo.activated[group] = cycle
        pseudo.activations.append(cycle)

    def _precharge(self, command: Command, banks: Iterable[_Bank]) -> None:
        """Close the rows of ``banks`` that were open and unused for long enough."""
        timing, cycle = self._timing, command.cycle
        self._takes(self._row_slots, (cycle,), "row slot", command)
        self._rested(cycle, command)
        for bank in banks:
            if bank.row is not None:
                self._after(cycle, bank.activated, timing.ras_cycles, "ras", command)
                self._after(cycle, bank.read, timing.rtp_cycles, "rtp", command)
                self._after(cycle, bank.written, timing.wr_cycles, "wr", command)
                bank.row = None
                bank.precharged = cycle

    def _read(self, command: Command, bank: _Bank, pseudo: _PseudoChannel) -> None:
        """Read a burst of the open row; the bus has had time to turn since the last write."""
        timing, cycle, group = self._timing, command.cycle, command.bank_group
        self._column(command, bank, timing.rcd_read_cycles, "rcd_read")
        self._between(command, pseudo.reads)
        for other, before in pseudo.writes.items():
            end = before + timing.cwl_cycles + timing.burst_cycles
            if other == group:
                self._after(cycle, end, timing.wtr_l_cycles, "wtr_l", command)
            else:
                self._after(cycle, end, timing.wtr_s_cycles, "wtr_s", command)
        self._carries(pseudo, cycle + timing.cl_cycles, command)
        bank.read = pseudo.reads[group] = cycle

    def _write(self, command: Command, bank: _Bank, pseudo: _PseudoChannel) -> None:
        """Write a burst to the open row, behind all data that was asked for before."""
        timing, cycle, group = self._timing, command.cycle, command.bank_group
        self._column(command, bank, timing.rcd_write_cycles, "rcd_write")
        self._between(command, pseudo.writes)
        data = cycle + timing.cwl_cycles
        for before in pseudo.reads.values():
            self._after(data, before + timing.cl_cycles, timing.burst_cycles, "rtw", command)
        self._carries(pseudo, data, command)
        bank.written = data + timing.burst_cycles
        pseudo.writes[group] = cycle

    def _refresh(self, command: Command) -> None:
        """Refresh all banks, none of which has a row open or is still closing one."""
        timing, cycle = self._timing, command.cycle
        self._takes(self._row_slots, (cycle,), "row slot", command)
        self._rested(cycle, command)
        for bank in self._banks.values():
            self._holds(bank.row is None, "row open", command)
            self._after(cycle, bank.precharged, timing.rp_cycles, "rp", command)
        self._refreshes += 1
        self._refreshed = cycle

    def _column(self, command: Command, bank: _Bank, rcd_cycles: int, rule: Rule) -> None:
        """See that the row is open, and was long enough."""
        self._takes(self._column_slots, (command.cycle,), "column slot", command)
        self._holds(bank.row is not None, "row closed", command)
        self._holds(bank.row in {None, command.row}, "other row", command)
        self._after(command.cycle, bank.activated, rcd_cycles, rule, command)
        self._rested(command.cycle, command)

    def _between(self, command: Command, alike: dict[int, int]) -> None:
        """See that two reads, or two writes, of one pseudo channel are far enough apart."""
        for group, before in alike.items():
            if group == command.bank_group:
                self._after(command.cycle, before, self._timing.ccd_l_cycles, "ccd_l", command)
            else:
                self._after(command.cycle, before, self._timing.ccd_s_cycles, "ccd_s", command)

    def _carries(self, pseudo: _PseudoChannel, first: int, command: Command) -> None:
        """Put a burst on the data bus, cycle by cycle."""
        cycles = range(first, first + self._timing.burst_cycles)
        self._holds(all(cycle not in pseudo.bus for cycle in cycles), "data bus", command)
        pseudo.bus.update(dict.fromkeys(cycles, command))

    def _rested(self, cycle: int, command: Command) -> None:
        """See that no refresh is under way in ``cycle``."""
        self._after(cycle, self._refreshed, self._timing.rfc_cycles, "rfc", command)

    def _takes(
        self, slots: set[int], cycles: tuple[int, ...], rule: Rule, command: Command
    ) -> None:
        """Give ``command`` slots that nobody has."""
        self._holds(slots.isdisjoint(cycles), rule, command)
        slots.update(cycles)

    def _after(self, cycle: int, before: int, cycles: int, rule: Rule, command: Command) -> None:
        """See that ``cycle`` is so many ``cycles`` after ``before``."""
        self._holds(cycle - before >= cycles, rule, command)

    def _holds(self, condition: object, rule: Rule, command: Command) -> None:
        """Note a violation unless ``condition`` is true."""
        if not condition:
            self.found.append(Violation(rule, command))

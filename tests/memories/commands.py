"""Reads the commands and locations of a banked memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, Never, TypeAlias

import numpy as np

from fabric.graph.hardware.dram import DramDescription
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.timing.memories import banked_rows as rows
from fabric.timing.memories.banked import BankedMemory
from fabric.timing.memories.banked_tables import AddressMapping

What: TypeAlias = Literal["activate", "precharge", "precharge all", "read", "write", "refresh"]

_WHAT: Final[dict[int, What]] = {
    rows.ACTIVATE: "activate",
    rows.PRECHARGE: "precharge",
    rows.PRECHARGE_ALL: "precharge all",
    rows.READ: "read",
    rows.WRITE: "write",
    rows.REFRESH: "refresh",
}


class Command(NamedTuple):
    cycle: int
    channel: int
    what: What
    pseudo_channel: int = 0
    bank_group: int = 0
    bank: int = 0
    row: int = 0


def commands(memory: BankedMemory, dram: DramDescription[Never]) -> list[Command]:
    # No command is issued in cycle 0, so rows with cycle 0 are unused.
    kept = [row for row in map(memory.log.__getitem__, range(memory.log.size)) if row.cycle > 0]
    assert len(kept) < memory.log.size, "the log is too short"
    issued = []
    for row in kept:
        group, bank = divmod(row.bank, dram.banks)
        pseudo, group = divmod(group, dram.bank_groups)
        what = _WHAT[row.what]
        issued.append(Command(row.cycle, row.channel, what, pseudo, group, bank, row.row))
    return issued


class Location(NamedTuple):
    channel: int
    pseudo_channel: int
    bank_group: int
    bank: int
    row: int


def locations(hbm: BankedDescription, addresses: Iterable[int]) -> list[Location]:
    located = AddressMapping(hbm).locate(np.array([*addresses], np.int64))
    groups, banks = np.divmod(located.banks, hbm.dram.banks)
    columns = located.channels, *np.divmod(groups, hbm.dram.bank_groups), banks, located.rows
    return list(map(Location, *(column.tolist() for column in columns)))

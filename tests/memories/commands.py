"""Reads the commands of DRAM channels from the log of a banked memory."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, Never, TypeAlias

from fabric.graph.hardware.dram import DramDescription
from fabric.timing.memories import banked_columns as c
from fabric.timing.memories.banked import BankedMemory

What: TypeAlias = Literal["activate", "precharge", "precharge all", "read", "write", "refresh"]

_WHAT: Final[dict[int, What]] = {
    c.ACTIVATES: "activate",
    c.PRECHARGES: "precharge",
    c.PRECHARGES_ALL: "precharge all",
    c.READS_COLUMN: "read",
    c.WRITES_COLUMN: "write",
    c.REFRESHES: "refresh",
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
    # No command goes in cycle 0: those are the rows that are free still.
    kept = memory.log[memory.log[:, c.LOG_CYCLE] > 0]
    assert len(kept) < len(memory.log), "the log is too short"
    found = []
    for row in kept.tolist():
        group, bank = divmod(row[c.LOG_BANK], dram.banks)
        pseudo, group = divmod(group, dram.bank_groups)
        what = _WHAT[row[c.LOG_WHAT]]
        found.append(
            Command(row[c.LOG_CYCLE], row[c.LOG_CHANNEL], what, pseudo, group, bank, row[c.LOG_ROW])
        )
    return found

"""The memory of the paper's hardware description: the HBM2 and generic controller of Ramulator 2.0.

It shares no code with the fabric's memory. Presets HBM2_2Gb and HBM2_2Gbps, FR-FCFS. An address has
a row, bank, rank, column and channel; all addresses are in channel 0. Source:
CMU-SAFARI/ramulator2.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

READ_LATENCY = 11
FOUR_ACTIVATIONS = 15
ENTRIES = 33

CONSTRAINTS: dict[int, dict[str, dict[str, int]]] = {
    0: {"ACT": {"ACT": 2, "PRE": 2}},
    1: {"ACT": {"ACT": 2}, "RD": {"RD": 4, "WR": 11}, "WR": {"WR": 4, "RD": 9}},
    2: {"ACT": {"ACT": 3}, "RD": {"RD": 2}, "WR": {"WR": 2, "RD": 10}},
    3: {
        "ACT": {"ACT": 19, "RD": 7, "WR": 7, "PRE": 17},
        "PRE": {"ACT": 7},
        "RD": {"PRE": 3},
        "WR": {"PRE": 14},
    },
}
"""Cycles from one command to another, by level: channel, pseudo channel, bank group, bank."""


@dataclass
class Entry:
    arrived: int
    port: int
    address: int
    final: str

    @property
    def bank(self) -> tuple[int, int, int]:
        return self.address >> 12 & 1, self.address >> 13 & 3, self.address >> 15 & 1

    @property
    def row(self) -> int:
        return self.address >> 16 & 0x3FFF


class BankedMemory:
    """One command a cycle: first for requests whose row was opened, then for reads or writes."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Entry]] = {"RD": [], "WR": []}
        self.active: list[Entry] = []
        self.due: deque[tuple[int, int, int]] = deque()
        self.writing = False
        self.open: dict[tuple[int, int, int], int] = {}
        self.next: dict[tuple[int, ...], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.activations: dict[int, list[int]] = {0: [], 1: []}

    def send(self, cycle: int, port: int, address: int, write: bool) -> bool:
        final = "WR" if write else "RD"
        if len(self.waiting[final]) == ENTRIES:
            return False
        self.waiting[final].append(Entry(cycle, port, address, final))
        return True

    def step(self, cycle: int) -> tuple[int, int] | None:
        answer = None
        if self.due and self.due[0][0] <= cycle:
            answer = self.due.popleft()[1:]
        entries = self.active
        if (chosen := self._best(entries, cycle)) is None:
            self._turn()
            entries = self.waiting["WR" if self.writing else "RD"]
            chosen = self._best(entries, cycle)
        if chosen is not None:
            self._issue(chosen, entries, cycle)
        return answer

    def _turn(self) -> None:
        reads, writes = len(self.waiting["RD"]), len(self.waiting["WR"])
        if self.writing:
            self.writing = writes >= 0.2 * 32 or not reads
        else:
            self.writing = writes > 0.8 * 32 or not reads

    def _command(self, entry: Entry) -> str:
        if entry.bank not in self.open:
            return "ACT"
        return entry.final if self.open[entry.bank] == entry.row else "PRE"

    def _best(self, entries: list[Entry], cycle: int) -> Entry | None:
        ready = [
            entry
            for entry in entries
            if all(
                self.next[(level, *entry.bank[:level])][self._command(entry)] <= cycle
                for level in range(4)
            )
        ]
        return min(ready, key=lambda entry: entry.arrived, default=None)

    def _issue(self, entry: Entry, entries: list[Entry], cycle: int) -> None:
        command, bank = self._command(entry), entry.bank
        if command == "PRE" and any(each.bank == bank for each in self.active):
            return
        for level in range(4):
            ready = self.next[(level, *bank[:level])]
            for other, cycles in CONSTRAINTS[level].get(command, {}).items():
                ready[other] = max(ready[other], cycle + cycles)
        if command == "PRE":
            del self.open[bank]
            return
        entries.remove(entry)
        if command == "ACT":
            self.open[bank] = entry.row
            self.active.append(entry)
            latest = [*self.activations[bank[0]], cycle][-4:]
            self.activations[bank[0]] = latest
            if len(latest) == 4:
                ready = self.next[(1, bank[0])]
                ready["ACT"] = max(ready["ACT"], latest[0] + FOUR_ACTIVATIONS)
        elif command == "RD":
            self.due.append((cycle + READ_LATENCY, entry.port, entry.address))

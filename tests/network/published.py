"""Compares the network model with traces of a real chip, Tenstorrent's Wormhole.

``python -m tests.network.published FILE.csv.gz`` prints relative errors of traces between cores: of
the spans (``span_mean``, ``span_worst``), and of the times from each processor's last read before a
barrier to the end of this barrier (``tail_median``). If a file also has loads from memory, their
errors have the prefix ``memory_``. In a file of only loads from memory, errors have no prefix.

The chip's figures come from its vendor. No number is fitted to the traces, but the rule of two
lanes was chosen after looking at them. The device model of tenstorrent/tt-npe (Apache-2.0) has the
torus, its routes, bytes a cycle, and latencies of reads. According to
tenstorrent/tt-isa-documentation (WormholeB0/NoC), returning data uses one of two virtual channels
at each link (the "buddy bit"), so a core answers two reads at a time.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from tests.network.transfers import Transfers

DATA = Path(__file__).parent / "data" / "wormhole_traces.csv.gz"

COLUMNS, ROWS = 10, 12
NETWORKS = ("NOC_0", "NOC_1")
LINK, CORE, MEMORY_INJECTS, MEMORY_ABSORBS = 30.0, 28.1, 23.2, 24.0
LANES = 2
MEMORY = {(0, row) for row in (0, 1, 5, 6, 7, 11)} | {(5, row) for row in range(ROWS)}

Row = dict[str, str]
Place = tuple[int, int]


class Barrier(NamedTuple):
    last_read: int
    measured: int
    predicted: float


def read_traces(path: Path) -> dict[str, list[Row]]:
    opened: Callable[..., Iterable[str]] = gzip.open if path.suffix == ".gz" else open
    traces: dict[str, list[Row]] = {}
    for row in csv.DictReader(opened(path, "rt", encoding="utf-8")):
        traces.setdefault(row["trace"], []).append(row)
    return traces


def barriers(rows: Iterable[Row]) -> list[Barrier]:
    transfers = Transfers(_capacities(), lanes=LANES)
    reads: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    last: dict[tuple[str, str, str], int] = {}
    ends: list[tuple[list[int], int, int]] = []
    for row in rows:
        who, cycle = (row["x"], row["y"], row["processor"]), int(row["cycle"])
        if row["event"] == "read":
            reader = (int(row["x"]), int(row["y"]))
            target = (int(row["dest_x"]), int(row["dest_y"]))
            network = NETWORKS.index(row["network"])
            links = _links(network, target, reader)
            latency = _read_cycles(reader, target)
            number = transfers.add(cycle + latency, int(row["bytes"]), links, links[0])
            reads[who].append(number)
            last[who] = cycle
        elif row["event"] == "read_barrier_end" and who in last:
            ends.append((list(reads[who]), last[who], cycle))
    finish = transfers.finish_cycles()
    return [
        Barrier(read, measured, max(finish[number] for number in numbers))
        for numbers, read, measured in ends
    ]


def figures(traces: Mapping[str, list[Row]]) -> dict[str, float]:
    loads = {name for name, rows in traces.items() if _reads_memory(rows)}
    errors: dict[str, float] = {}
    if set(traces) - loads:
        errors |= _errors("", [rows for name, rows in traces.items() if name not in loads])
    if loads:
        prefix = "memory_" if errors else ""
        errors |= _errors(prefix, [rows for name, rows in traces.items() if name in loads])
    return errors


def _errors(prefix: str, traces: Iterable[list[Row]]) -> dict[str, float]:
    spans, tails = [], []
    for rows in traces:
        ends = barriers(rows)
        measured = max(barrier.measured for barrier in ends)
        spans.append(abs(max(barrier.predicted for barrier in ends) - measured) / measured)
        for barrier in ends:
            tail = barrier.measured - barrier.last_read
            if tail > 0:
                tails.append(abs(barrier.predicted - barrier.measured) / tail)
    return {
        f"{prefix}span_mean": mean(spans),
        f"{prefix}span_worst": max(spans),
        f"{prefix}tail_median": median(tails),
    }


def _reads_memory(rows: Iterable[Row]) -> bool:
    return any(
        row["event"] == "read" and (int(row["dest_x"]), int(row["dest_y"])) in MEMORY
        for row in rows
    )


def _read_cycles(reader: Place, target: Place) -> int:
    if reader == target:
        return 70
    if reader[0] == target[0]:
        return 154
    return 170 if reader[1] == target[1] else 270


def _number(network: int, place: Place, way: int) -> int:
    return ((network * ROWS + place[1]) * COLUMNS + place[0]) * 4 + way


def _capacities() -> list[float]:
    capacities: list[float] = []
    for _ in NETWORKS:
        for row in range(ROWS):
            for column in range(COLUMNS):
                of_memory = (column, row) in MEMORY
                ends = (MEMORY_INJECTS, MEMORY_ABSORBS) if of_memory else (CORE, CORE)
                capacities += [LINK, LINK, *ends]
    return capacities


def _links(network: int, source: Place, target: Place) -> list[int]:
    links = [_number(network, source, 2)]
    column, row = source
    step = 1 if network == 0 else -1
    ways = (0, 1) if network == 0 else (1, 0)
    for way in ways:
        while (column, row)[way] != target[way]:
            links.append(_number(network, (column, row), way))
            if way == 0:
                column = (column + step) % COLUMNS
            else:
                row = (row + step) % ROWS
    return [*links, _number(network, target, 3)]


if __name__ == "__main__":
    for name, error in figures(read_traces(Path(sys.argv[1]))).items():
        sys.stdout.write(f"{name} {error:.4f}\n")

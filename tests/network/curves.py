"""Compares the network model with curves of a cycle-level simulator, BookSim 2.

``python -m tests.network.curves FILE.csv`` prints, for each row of a table of curves, the model's
packet latency and its relative error. The last lines are ``latency_below_half``,
``latency_to_three_quarters`` (the worst rows below half of saturation, and from there to three
quarters) and ``saturation_worst``.

Sources are open-loop: in each cycle a node has a new packet with the probability load / flits, from
a seeded generator. Routers and ends have the simulator's configuration: 4 cycles in each router (a
route has one router more than links), 2 cycles at the ends, and 8 virtual channels.

Saturation is the smaller of two loads: the load that fills the busiest link of the pattern, and the
table's first unstable load. The simulator saturates between its last stable and its first unstable
load. An error is the model's distance from this interval.
"""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from fabric.graph.hardware.latency import Mesh, Site
from tests.network.transfers import Transfers

DATA = Path(__file__).parent / "data" / "booksim_mesh.csv"

LANES = 8
WARM_CYCLES = 300
# By the flits of a packet: long packets are fewer.
MEASURED_CYCLES = {1: 900, 16: 3000}

UNSTABLE_GROWTH = 1.5


class Curve(NamedTuple):
    mesh: str
    traffic: str
    flits: int
    latencies: dict[float, float]
    first_unstable: float | None

    @property
    def side(self) -> int:
        return int(self.mesh.split("x")[0])


def read_curves(path: Path) -> list[Curve]:
    rows: dict[tuple[str, str, int], list[dict[str, str]]] = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["mesh"], row["traffic"], int(row["packet_flits"])].append(row)
    curves = []
    for (mesh, traffic, flits), of_curve in rows.items():
        load = "offered_flits_per_node_cycle"
        unstable = [float(row[load]) for row in of_curve if row["stable"] == "no"]
        stable = {
            float(row[load]): float(row["packet_latency_cycles"])
            for row in of_curve
            if row["stable"] == "yes"
        }
        curves.append(Curve(mesh, traffic, flits, stable, min(unstable, default=None)))
    return curves


def _target(traffic: str, site: Site, side: int, draw: random.Random) -> Site:
    if traffic == "uniform":
        return Site(draw.randrange(side), draw.randrange(side))
    if traffic == "transpose":
        return Site(site.row, site.column)
    ahead = {"neighbor": 1, "tornado": (side + 1) // 2 - 1}[traffic]
    return Site((site.column + ahead) % side, (site.row + ahead) % side)


def packet_latency(curve: Curve, load: float, cycles: int | None = None) -> tuple[float, bool]:
    side, flits = curve.side, curve.flits
    cycles = cycles or MEASURED_CYCLES.get(flits, 3000)
    mesh = Mesh(
        columns=side, rows=side, link_bytes_per_cycle=1, injection_bytes_per_cycle=1, hop_cycles=4,
        ends_cycles=6,
    )  # fmt: skip
    draw = random.Random(f"{curve.mesh} {curve.traffic} {flits} {load}")
    transfers = Transfers(mesh.capacities, lanes=LANES)
    begun: list[tuple[int, int]] = []
    sites = mesh.sites
    routes = {}
    for cycle in range(WARM_CYCLES + cycles):
        for number, site in enumerate(sites):
            if draw.random() < load / flits:
                ends = site, _target(curve.traffic, site, side, draw)
                if ends not in routes:
                    routes[ends] = mesh.route(*ends)
                transfers.add(cycle, flits, routes[ends].links, number)
                begun.append((cycle, routes[ends].cycles))
    # The cycles of the routers include the first flit of a packet.
    latencies = [
        (start, end - start + head - 1)
        for end, (start, head) in zip(transfers.finish_cycles(), begun, strict=True)
        if start >= WARM_CYCLES
    ]
    third = cycles // 3
    first = mean(each for start, each in latencies if start < WARM_CYCLES + third)
    last = mean(each for start, each in latencies if start >= WARM_CYCLES + 2 * third)
    grows = last > first * UNSTABLE_GROWTH and last - first > flits
    return mean(each for _, each in latencies), not grows


def capacity(curve: Curve) -> float:
    side = curve.side
    mesh = Mesh(columns=side, rows=side)
    carried: Counter[int] = Counter()
    for site in mesh.sites:
        if curve.traffic == "uniform":
            targets = list(mesh.sites)
        else:
            targets = [_target(curve.traffic, site, side, random.Random(0))]
        for target in targets:
            for link in mesh.route(site, target).links:
                carried[link] += 1
    busiest = max(carried.values()) / (side * side if curve.traffic == "uniform" else 1)
    return 1 / busiest


def stability(curve: Curve) -> tuple[float, float]:
    at_most, at_least = max(curve.latencies, default=0.0), curve.first_unstable
    stable, unstable = 0.0, float("inf")
    for part in (1.0, 0.9, 0.8):
        if at_most and packet_latency(curve, at_most * part)[1]:
            stable = at_most * part
            break
    for part in (1.0, 1.1, 1.2):
        if at_least and not packet_latency(curve, at_least * part)[1]:
            unstable = at_least * part
            break
    return stable, unstable


def outside(curve: Curve) -> float:
    stable, unstable = stability(curve)
    off = 0.0
    if curve.latencies:
        off = 1 - stable / max(curve.latencies)
    if curve.first_unstable is not None:
        off = max(off, unstable / curve.first_unstable - 1)
    return off


def errors(curve: Curve, cycles: int | None = None) -> Iterator[tuple[float, float, float]]:
    saturated = min(capacity(curve), curve.first_unstable or 1.0)
    for load, measured in curve.latencies.items():
        latency, _ = packet_latency(curve, load, cycles)
        yield load / saturated, latency, latency / measured - 1


def worst(rows: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    return {
        "latency_below_half": max((abs(off) for part, _, off in rows if part < 0.5), default=0.0),
        "latency_to_three_quarters": max(
            (abs(off) for part, _, off in rows if 0.5 <= part <= 0.75), default=0.0
        ),
    }


def _main(path: Path) -> None:
    rows: list[tuple[float, float, float]] = []
    off_saturation = []
    for curve in read_curves(path):
        name = f"{curve.mesh} {curve.traffic} {curve.flits} flits"
        of_curve = list(errors(curve))
        for load, (part, latency, off) in zip(curve.latencies, of_curve, strict=True):
            _show(f"{name}, load {load}: {latency:.2f} cycles, {off:+.4f} at {part:.2f}")
        off_saturation.append(outside(curve))
        _show(f"{name}, saturation: {off_saturation[-1]:.4f} outside")
        rows += of_curve
    for which, error in worst(rows).items():
        _show(f"{which} {error:.4f}")
    _show(f"saturation_worst {max(off_saturation):.4f}")


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))

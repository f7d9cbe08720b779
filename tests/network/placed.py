"""Random graphs of operators on a mesh, with an independent model that steps through cycles.

The model shares no code with the fabric: it walks routes site by site, computes shares as fractions
by their definition, and lets each unit act in each cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st
from typing_extensions import override

from fabric import Hardware, Hop, Program, Report, Stream, StreamType, Tile, simulate
from fabric.extend import ChannelDescription, Value, Wiring
from fabric.graph.hardware.latency import Mesh, Site
from fabric.graph.values.stream_type import TileType
from fabric.graph.wiring.program import hardware_scope
from operators import Broadcast
from tests.fabric.scripted import Stage
from tests.network.test_transfers import rates_by_definition
from tests.schedules import schedule

BYTE = np.dtype(np.uint8)

# A smaller remainder in the last cycle is not counted.
UNCOUNTED = Fraction(3050, 2**18)

Link: TypeAlias = tuple[object, ...]


class Wire(NamedTuple):
    producer: int
    consumer: int
    depth: int
    size_bytes: int


class Placed(NamedTuple):
    mesh: Mesh
    sites: list[Site]
    nodes: list[tuple[int, bool] | None]
    wires: list[Wire]
    rounds: int
    interval: int


_LIMIT = st.one_of(st.none(), st.integers(1, 20))


@st.composite
def placed_graphs(draw: st.DrawFn, *, limited: bool = True) -> Placed:
    columns, rows = draw(st.integers(1, 2)) * 2, draw(st.integers(2, 3))
    limit = _LIMIT if limited else st.none()
    dies = draw(st.booleans())
    mesh = Mesh(
        columns=columns,
        rows=rows,
        link_bytes_per_cycle=draw(limit),
        injection_bytes_per_cycle=draw(limit),
        hop_cycles=draw(st.integers(1, 3)),
        ends_cycles=draw(st.integers(0, 2)),
        die_columns=columns // 2 if dies else None,
        crossing_cycles=draw(st.integers(1, 9)) if dies else None,
        crossing_bytes_per_cycle=draw(limit) if dies else None,
    )
    size = draw(st.integers(2, 7))
    pairs = []
    for consumer in range(1, size):
        producers = draw(st.sets(st.integers(0, consumer - 1), min_size=1, max_size=3))
        pairs += [(producer, consumer) for producer in sorted(producers)]
    nodes: list[tuple[int, bool] | None] = []
    for node in range(size):
        inputs = sum(consumer == node for _, consumer in pairs)
        outputs = sum(producer == node for producer, _ in pairs)
        if inputs == 1 and outputs and draw(st.booleans()):
            nodes.append(None)
        else:
            nodes.append((draw(st.integers(0, 4)), draw(st.booleans())))
    wires: list[Wire] = []
    for producer, consumer in pairs:
        size_bytes = draw(st.integers(1, 60))
        if nodes[producer] is None:
            size_bytes = next(each.size_bytes for each in wires if each.consumer == producer)
        wires.append(Wire(producer, consumer, draw(st.integers(1, 4)), size_bytes))
    sites = [draw(st.sampled_from(mesh.sites)) for _ in range(size)]
    return Placed(mesh, sites, nodes, wires, draw(st.integers(0, 8)), draw(st.integers(0, 1)))


# ------------------------------------------------------------------------------ the fabric


@dataclass(frozen=True)
class TileStage(Stage):
    sizes: Sequence[int] = ()

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return tuple(StreamType((self.count,), TileType(1, size, BYTE)) for size in self.sizes)

    @override
    def value(self, port: int) -> Value:
        return Tile(1, self.sizes[port], BYTE)


def write_placement(path: Path, program: str, sites: dict[str, Site]) -> Path:
    lines = [f'"{name}" = [{site.column}, {site.row}]' for name, site in sites.items()]
    path.write_text("\n".join([f'program = "{program}"', "[units]", *lines, ""]), encoding="utf-8")
    return path


def run_placed(
    placed: Placed,
    folder: Path,
    order: str | int = "natural",
    hops: dict[str, Hop] | None = None,
    **settings: object,
) -> tuple[list[list[int]], Report]:
    wires, stages, depths = placed.wires, [], {}
    made: dict[int, Stream] = {}
    hardware = Hardware(
        network=placed.mesh if hops is None else None,
        channel=ChannelDescription(interval_cycles=placed.interval),
    )
    with hardware_scope(hardware), Program("placed") as program:
        for node, what in enumerate(placed.nodes):
            inputs = [number for number, wire in enumerate(wires) if wire.consumer == node]
            outgoing = [number for number, wire in enumerate(wires) if wire.producer == node]
            streams = [made[number] for number in inputs]
            stage = TileStage(
                placed.rounds,
                outputs=len(outgoing),
                work_cycles=((what or (0, False))[0],),
                works_first=(what or (0, False))[1],
                peeks=bool(node % 2),
                name=f"n{node}",
                sizes=[wires[number].size_bytes for number in outgoing],
            )
            stages.append(stage)
            if what is None:
                outputs = Broadcast(len(outgoing), name=f"n{node}")(*streams)
            else:
                outputs = stage(*streams)
            for port, number in enumerate(inputs):
                depths[f"n{node}.{port}"] = wires[number].depth
            made.update(zip(outgoing, outputs, strict=True))
    sites = {f"n{node}": site for node, site in enumerate(placed.sites)}
    file = write_placement(folder / "placement.toml", "placed", sites)
    where = {"placement": file} if hops is None else {"hops": hops}
    with schedule(order):
        report = simulate(program, depths=depths, **where, **settings)  # type: ignore[arg-type]
    return [stage.clocks for stage in stages], report


# ------------------------------------------------------------------------------- the model


def way(mesh: Mesh, source: Site, target: Site) -> tuple[int, list[Link]]:
    column, row = source
    cycles = mesh.ends_cycles
    links: list[Link] = [("out", column, row)]
    while (column, row) != tuple(target):
        before = column, row
        if column != target.column:
            column += 1 if target.column > column else -1
        else:
            row += 1 if target.row > row else -1
        links.append(("link", before, (column, row)))
        cycles += _crossing(mesh, before, (column, row), mesh.crossing_cycles, mesh.hop_cycles) or 0
    return cycles, [*links, ("in", column, row)]


def _crossing(
    mesh: Mesh,
    before: tuple[int, int],
    after: tuple[int, int],
    crossing: int | None,
    plain: int | None,
) -> int | None:
    width = mesh.die_columns or mesh.columns
    return plain if before[0] // width == after[0] // width else crossing


def _capacity(mesh: Mesh, link: Link) -> int | None:
    if link[0] != "link":
        return mesh.injection_bytes_per_cycle
    before, after = link[1:]
    return _crossing(
        mesh,
        before,  # type: ignore[arg-type]
        after,  # type: ignore[arg-type]
        mesh.crossing_bytes_per_cycle,
        mesh.link_bytes_per_cycle,
    )


@dataclass
class _Channel:
    depth: int
    cycles: int
    carried_by: int | None
    visible: deque[Fraction | int] = field(default_factory=deque)
    taken: list[int] = field(default_factory=list)
    sent: int = 0
    last_sent: int = -1
    arrived: int = 0
    closed: int | None = None


class _Flow:
    def __init__(self, links: list[Link], ends: list[_Channel], size_bytes: int) -> None:
        self.links, self.ends, self.size_bytes = links, ends, size_bytes
        self.waiting = 0
        self.left = Fraction(0)


def _let_pass(mesh: Mesh, flows: list[_Flow], cycle: int) -> None:
    now, end = Fraction(cycle), Fraction(cycle + 1)
    while now < end:
        for flow in flows:
            if not flow.left and flow.waiting:
                flow.waiting -= 1
                flow.left = Fraction(flow.size_bytes)
        live = {number: flow for number, flow in enumerate(flows) if flow.left}
        if not live:
            return
        limits = {
            link: limit
            for flow in live.values()
            for link in flow.links
            if (limit := _capacity(mesh, link)) is not None
        }
        rates = rates_by_definition(
            limits, {n: frozenset(flow.links) & limits.keys() for n, flow in live.items()}
        )
        after = min([end, *(now + flow.left / rates[n] for n, flow in live.items())])
        for number, flow in live.items():
            flow.left -= rates[number] * (after - now)
            if not flow.left:
                for channel in flow.ends:
                    channel.visible.append(ceil(after - UNCOUNTED) + channel.cycles)
                    channel.arrived += 1
        now = after


def expected_clocks(placed: Placed) -> list[list[int]]:  # noqa: C901, PLR0915 - one page
    mesh, nodes, wires, count = placed.mesh, placed.nodes, placed.wires, placed.rounds
    interval = placed.interval
    channels: list[_Channel] = []
    flows: list[_Flow] = []
    of_broadcast: dict[int, _Flow] = {}
    for wire in wires:
        source, target = placed.sites[wire.producer], placed.sites[wire.consumer]
        if source == target:
            channels.append(_Channel(wire.depth, 1, None))
            continue
        cycles, links = way(mesh, source, target)
        channel = _Channel(wire.depth, cycles, None)
        channels.append(channel)
        if nodes[wire.producer] is None and wire.producer in of_broadcast:
            flow = of_broadcast[wire.producer]
            flow.links += [link for link in links if link not in flow.links]
            flow.ends.append(channel)
        else:
            flow = _Flow(links, [channel], wire.size_bytes)
            flows.append(flow)
            if nodes[wire.producer] is None:
                of_broadcast[wire.producer] = flow
    flows = [
        flow for flow in flows if any(_capacity(mesh, link) is not None for link in flow.links)
    ]
    for number, flow in enumerate(flows):
        for channel in flow.ends:
            channel.carried_by = number
    clocks: list[list[int]] = [[] for _ in nodes]

    def life(node: int) -> Iterator[tuple[str, int]]:
        incoming = [e for e, wire in enumerate(wires) if wire.consumer == node]
        outgoing = [e for e, wire in enumerate(wires) if wire.producer == node]
        what = nodes[node]
        for _ in range(count):
            yield from (("receive", e) for e in incoming)
            if what is None:
                yield from (("reserve", e) for e in outgoing)
                yield from (("put", e) for e in outgoing)
                continue
            work, first = what
            if first:
                yield "work", work
            yield from (("send", e) for e in outgoing)
            if not first:
                yield "work", work
        yield from (("end", e) for e in incoming)
        yield "close", 0

    lives = [life(node) for node in range(len(nodes))]
    todo = [next(one) for one in lives]
    busy_until = [0] * len(nodes)
    reserved = [0] * len(wires)
    running = set(range(len(nodes)))
    cycle = 0

    def put(number: int) -> None:
        channel = channels[number]
        channel.sent += 1
        channel.last_sent = cycle
        if channel.carried_by is None:
            channel.visible.append(cycle + channel.cycles)
            channel.arrived += 1
        elif channel is flows[channel.carried_by].ends[-1]:
            flows[channel.carried_by].waiting += 1

    def done(node: int) -> bool:  # noqa: C901, PLR0912 - the same
        what, which = todo[node]
        channel = channels[which] if what not in ("work", "close") else None
        if what == "receive":
            assert channel is not None
            if not channel.visible or channel.visible[0] > cycle:
                return False
            if interval and channel.taken and channel.taken[-1] == cycle:
                return False
            channel.visible.popleft()
            channel.taken.append(cycle)
        elif what in ("send", "reserve"):
            assert channel is not None
            back = channel.cycles
            freed = sum(taken + back <= cycle for taken in channel.taken)
            if channel.sent + reserved[which] - freed >= channel.depth:
                return False
            if interval and channel.last_sent == cycle:
                return False
            if what == "send":
                put(which)
            else:
                reserved[which] += 1
        elif what == "put":
            reserved[which] -= 1
            put(which)
        elif what == "work":
            busy_until[node] = cycle + which
        elif what == "end":
            assert channel is not None
            if (
                channel.closed is None
                or channel.closed > cycle
                or channel.arrived < channel.sent
                or channel.visible
            ):
                return False
        else:
            running.discard(node)
            for wire, other in zip(wires, channels, strict=True):
                if wire.producer == node:
                    other.closed = cycle + (other.cycles if interval else 0)
        if what in ("receive", "send", "close"):
            clocks[node].append(cycle)
        return True

    while running:
        moved = True
        # An end is seen in its own cycle.
        while moved:
            moved = False
            for node in sorted(running):
                while node in running and busy_until[node] <= cycle and done(node):
                    moved = True
                    if node in running:
                        todo[node] = next(lives[node])
        _let_pass(mesh, flows, cycle)
        cycle += 1
    return [[] if what is None else clock for what, clock in zip(nodes, clocks, strict=True)]

"""Random graphs of operators with forks and joins, on channels of any depth and latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import strategies as st

from fabric import Hop, Program, Report, Stream, simulate
from fabric.extend import Observer
from tests.fabric.scripted import Stage
from tests.schedules import schedule

Wire: TypeAlias = tuple[int, int, int, Hop]

Graph: TypeAlias = tuple[list[tuple[int, bool]], list[Wire], int]

_LATENCY = st.one_of(st.just(1), st.integers(1, 6))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(2, 7))
    nodes = [(draw(st.integers(0, 4)), draw(st.booleans())) for _ in range(size)]
    edges = []
    for consumer in range(1, size):
        producers = draw(st.sets(st.integers(0, consumer - 1), min_size=1, max_size=3))
        edges += [
            (producer, consumer, draw(st.integers(1, 5)), Hop(draw(_LATENCY), draw(_LATENCY)))
            for producer in sorted(producers)
        ]
    return nodes, edges, draw(st.integers(0, 12))


def run_graph(
    nodes: list[tuple[int, bool]],
    edges: list[Wire],
    count: int,
    order: str | int = "natural",
    observers: Sequence[Observer] = (),
) -> tuple[list[list[int]], Report]:
    """Run a graph and return the clocks of each node after each of its operations."""
    stages = [
        Stage(
            count,
            outputs=sum(edge[0] == node for edge in edges),
            work_cycles=(work,),
            works_first=first,
            # A receive is a peek and a take.
            peeks=bool(node % 2),
            name=f"n{node}",
        )
        for node, (work, first) in enumerate(nodes)
    ]
    depths, hops = {}, {}
    with Program("graph") as program:
        made: dict[int, Stream] = {}
        for node, stage in enumerate(stages):
            inputs = [number for number, edge in enumerate(edges) if edge[1] == node]
            outputs = stage(*(made[number] for number in inputs))
            for port, number in enumerate(inputs):
                depths[f"n{node}.{port}"], hops[f"n{node}.{port}"] = edges[number][2:]
            outgoing = [number for number, edge in enumerate(edges) if edge[0] == node]
            made.update(zip(outgoing, outputs, strict=True))
    with schedule(order):
        report = simulate(program, depths=depths, hops=hops, observers=observers)
    return [stage.clocks for stage in stages], report

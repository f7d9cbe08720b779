"""Repeated parts of programs: which operators are alike, and how far they are folded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from hypothesis import given

from fabric import Program, Stream
from fabric.drawing.picture import picture_of
from fabric.drawing.svg import svg
from fabric.symbolic import folding
from fabric.symbolic.folding import alike, folded
from fabric.wiring.elaborate import Plan, elaborate
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.graphs import Graph, graphs
from tests.fabric.scripted import Stage
from tests.profiles import examples


def chain(length: int) -> Plan:
    """Maps one behind the other, wired in a loop."""
    with Program("chain") as program:
        stream = Flatten(0, 1)(LinearOffChipLoad(np.zeros((64, 64)), tile=(16, 64))())
        for _ in range(length):
            stream = Map(SiLU())(stream)
        LinearOffChipStore("y")(stream)
    return elaborate(program)


def wired(graph: Graph) -> Plan:
    """Stages of two kinds, wired as drawn."""
    nodes, edges, count = graph
    with Program("graph") as program:
        made: dict[int, Stream] = {}
        for node in range(len(nodes)):
            incoming = [number for number, edge in enumerate(edges) if edge[1] == node]
            outgoing = [number for number, edge in enumerate(edges) if edge[0] == node]
            stage = Stage(count, outputs=len(outgoing), name=f"n{node}")
            outputs = stage(*(made[number] for number in incoming))
            made.update(zip(outgoing, outputs, strict=True))
    return elaborate(program)


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Give equal keys equal numbers."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def refined(plan: Plan) -> list[int]:
    """Return a number for each node, equal for those alike: all are looked at in every round."""
    colours = numbered(map(folding._signature, plan.nodes))
    while True:
        near: list[set[Hashable]] = [set() for _ in plan.nodes]
        for edge in plan.edges:
            producer, consumer = edge.producer, edge.consumer
            out, into = (
                0 if node.operator.kind == "routing" else port
                for node, port in ((producer, edge.output), (consumer, edge.input))
            )
            near[producer.index].add(("out", out, colours[consumer.index]))
            near[consumer.index].add(("in", into, colours[producer.index]))
        finer = numbered(
            (colour, frozenset(around)) for colour, around in zip(colours, near, strict=True)
        )
        if len(set(finer)) == len(set(colours)):
            return colours
        colours = finer


class TestAlike:
    @examples(quick=15, deep=60)
    @given(graph=graphs())
    def test_any_graph(self, graph: Graph) -> None:
        """Looking only at what has changed comes to the same as looking at all in every round."""
        plan = wired(graph)
        group_of = {node: number for number, group in enumerate(alike(plan)) for node in group}

        assert refined(plan) == numbered(group_of[node] for node in plan.nodes)

    def test_a_chain(self) -> None:
        """Operators of a chain differ by how far they are from its ends."""
        assert [1] * 8 == [len(group) for group in alike(chain(5))]


class TestFolded:
    def test_no_more_than_needed(self) -> None:
        """Where there are few groups, they stay as they are."""
        plan = chain(20)

        assert alike(plan) == folded(plan, 23)
        assert [1, 1, 20, 1] == [len(group) for group in folded(plan, 22)]

    def test_by_kind(self) -> None:
        """Wired at many lines, operators are folded by their kind."""
        lines = "\n".join(["stream = Map(SiLU())(stream)"] * 30)
        load = LinearOffChipLoad(np.zeros((64, 64)), tile=(16, 64))
        with Program("lines") as program:
            names = {"Map": Map, "SiLU": SiLU, "stream": load(), "Store": LinearOffChipStore}
            exec(compile(f"{lines}\nStore('y')(stream)", "lines.py", "exec"), names)
        plan = elaborate(program)

        assert [1, 30, 1] == [len(group) for group in folded(plan, 10)]
        assert 32 == len(folded(plan, 32))

    def test_ten_thousand(self) -> None:
        """Ten thousand operators one behind the other are a picture of four boxes."""
        plan = chain(10_000)
        picture = picture_of(plan)

        assert [1, 1, 10_000, 1] == [box.count for box in picture.boxes]
        assert len(plan.edges) == sum(arrow.count for arrow in picture.arrows)
        assert "map_1..10000" in svg(picture)

"""Repeated parts of programs: which operators are equal, and how far they are folded."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given

from fabric import Program, Stream
from fabric.analysis.drawing.picture import picture_of
from fabric.analysis.drawing.svg import svg
from fabric.analysis.symbolic.folding import alike, folded
from fabric.graph.wiring.elaborate import Plan, elaborate
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.graphs import Graph, graphs
from tests.fabric.scripted import Stage
from tests.profiles import examples


def chain(length: int) -> Plan:
    with Program("chain") as program:
        stream = Flatten(0, 1)(LinearOffChipLoad(np.zeros((64, 64)), tile=(16, 64))())
        for _ in range(length):
            stream = Map(SiLU())(stream)
        LinearOffChipStore("y")(stream)
    return elaborate(program)


def wired(graph: Graph) -> Plan:
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


@examples(quick=7, deep=60)
@given(graph=graphs())
def test_operators_with_names_that_differ_in_numbers_are_alike(graph: Graph) -> None:
    plan = wired(graph)
    group_of = {node: number for number, group in enumerate(alike(plan)) for node in group}
    expected = [
        (
            re.sub(r"\d+", "#", node.name),
            type(node.operator),
            node.place,
            {str(stream.shape) for stream in node.input_types},
            {str(stream.shape) for stream in node.output_types},
            len(node.outputs),
        )
        for node in plan.nodes
    ]

    for one, it in zip(plan.nodes, expected, strict=True):
        for other, same in zip(plan.nodes, expected, strict=True):
            assert (group_of[one] == group_of[other]) == (it == same)


def test_operators_of_many_lines_are_folded_by_kind() -> None:
    lines = "\n".join(["stream = Map(SiLU())(stream)"] * 30)
    load = LinearOffChipLoad(np.zeros((64, 64)), tile=(16, 64))
    with Program("lines") as program:
        names = {"Map": Map, "SiLU": SiLU, "stream": load(), "Store": LinearOffChipStore}
        exec(compile(f"{lines}\nStore('y')(stream)", "lines.py", "exec"), names)
    plan = elaborate(program)

    assert [1, 30, 1] == [len(group) for group in folded(plan, 10)]
    assert 32 == len(folded(plan, 32))


def test_ten_thousand_operators_are_four_boxes() -> None:
    plan = chain(10_000)
    picture = picture_of(plan)

    assert [1, 1, 10_000, 1] == [box.count for box in picture.boxes]
    assert len(plan.edges) == sum(arrow.count for arrow in picture.arrows)
    assert "silu_1..10000" in svg(picture)

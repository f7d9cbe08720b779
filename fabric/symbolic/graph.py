"""The operators of a program in the order of their streams."""

from __future__ import annotations

from typing import NamedTuple

from fabric.wiring.elaborate import Edge, Plan
from fabric.wiring.stream import Feedback

__all__ = ["Graph", "graph_of"]


class Graph(NamedTuple):
    """The operators in the order of their streams; what comes back from behind is left out.

    Attributes:
        order: indices of nodes, those in front first.
        into: by node, the edges of its inputs; None for one that comes back.
        out_of: by node, its edges.
    """

    order: list[int]
    into: list[list[Edge | None]]
    out_of: list[list[Edge]]


def graph_of(plan: Plan) -> Graph:
    """Return the operators of ``plan`` in the order of their streams."""
    into: list[list[Edge | None]] = [[None] * len(node.inputs) for node in plan.nodes]
    out_of: list[list[Edge]] = [[] for _ in plan.nodes]
    waiting = [0] * len(plan.nodes)
    for edge in plan.edges:
        if isinstance(edge.consumer.inputs[edge.input], Feedback):
            continue
        into[edge.consumer.index][edge.input] = edge
        out_of[edge.producer.index].append(edge)
        waiting[edge.consumer.index] += 1
    order = [number for number, edges in enumerate(waiting) if not edges]
    for number in order:
        for edge in out_of[number]:
            behind = edge.consumer.index
            waiting[behind] -= 1
            if not waiting[behind]:
                order.append(behind)
    return Graph(order, into, out_of)

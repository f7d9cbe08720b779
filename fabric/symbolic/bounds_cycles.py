"""Lower bounds of a run's cycles: what its units and its off-chip memory cannot do in less.

Each function has a proof in its docstring. All rest on the cycle rules:

* what is sent in cycle t is visible in t + 1 at the earliest, whatever the channel;
* a unit's clock never goes back, and in the end it is no earlier than the end of any stream that
  its operator reads;
* a run lasts as long as its largest final clock, and as the off-chip memory: the flat one stops
  ``SHUTDOWN_CYCLES`` after its last client.

Nothing rests on depths: a full channel holds a unit up, and lets none go on earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fabric.hardware.description import FlatDescription
from fabric.hardware.least_cycles import least_shared_cycles
from fabric.memories.flat import SHUTDOWN_CYCLES
from fabric.symbolic.graph import Graph
from fabric.symbolic.least import Least
from fabric.telling.causes import Cause
from fabric.wiring.elaborate import Plan

__all__ = ["Bound", "bounds_of_cycles"]


class Bound(NamedTuple):
    """A lower bound of a run's cycles.

    Attributes:
        cycles: no run that completes is shorter.
        what: needs them: the name of an operator, or ``hbm``.
    """

    cycles: int
    what: str


def bounds_of_cycles(plan: Plan, graph: Graph, least: Sequence[Least]) -> dict[str, Bound]:
    """Return the largest lower bound of each kind: the largest of all is a lower bound, too.

    Args:
        plan: the program.
        graph: of it.
        least: what its operators do, in node order.

    Returns:
        By what needs the cycles: ``compute``, ``memory`` and ``routing`` units, and ``hbm``, which
        all clients share.
    """
    starts = earliest_starts(graph, least)
    rests = least_rests(plan, graph, least)
    found = dict(busiest_units(plan, least, starts, rests))
    shared = shared_memory(plan, least, starts, rests)
    return found if shared is None else {**found, Cause.HBM.value: shared}


def earliest_starts(graph: Graph, least: Sequence[Least]) -> list[int]:
    """Return when each operator has what its first element takes, at the earliest.

    Proof, along the streams. An operator in front sends its first element no earlier than
    ``first_cycles`` after it has what that takes, and a cycle later that is visible. Who needs all
    inputs has what it needs when the last of their first elements is visible; who needs any, when
    the first is. Where a group may be empty, a bare stop may come instead of an element, and where
    nothing is known anything may: that is cycle 0. What comes back from behind may be there in
    cycle 0, too.
    """
    starts = [0] * len(least)
    for number in graph.order:
        its = least[number]
        if its.starts_with == "none":
            continue
        seen = [
            0 if each < 0 else 1 + max(starts[each] + least[each].first_cycles, 0)
            for each in graph.into[number]
        ]
        starts[number] = max(seen) if its.starts_with == "all" else min(seen)
    return starts


def least_rests(plan: Plan, graph: Graph, least: Sequence[Least]) -> list[int]:
    """Return how long a run goes on at least after each operator has sent its last element.

    Of one without outputs it is how long after its end.

    Proof, against the streams. Let an operator send its last element to an output in cycle t. Its
    reader sees it in t + 1 or later; where the last element of what the reader sends waits for it,
    that is sent ``last_cycles`` later at the earliest, and from there on the same is true of the
    reader. Of several outputs the slowest counts; where elements are dealt out, the last one went
    to some output that has elements, and the quickest of these counts. In any case its outputs end
    no earlier, nor do those of a reader that sees that end first; where one of the readers is a
    client of the off-chip memory, or the operator itself, the memory goes on for
    ``SHUTDOWN_CYCLES`` after that.
    """
    is_flat = type(plan.program.hardware.hbm) is FlatDescription
    rests = [0] * len(least)
    shutdown = [0] * len(least)
    for number in reversed(graph.order):
        node, its = plan.nodes[number], least[number]
        edges = graph.out_of[number]
        if is_flat and node.operator.off_chip is not None:
            shutdown[number] = SHUTDOWN_CYCLES
        for edge in edges:
            behind = edge.consumer
            if behind.operator.off_chip is not None or edge.input in least[behind.index].sees:
                shutdown[number] = max(shutdown[number], shutdown[behind.index])
        rest = shutdown[number]
        ways = dict.fromkeys(its.late, rest)
        for edge in edges:
            reader = least[edge.consumer.index]
            if edge.output in ways and edge.input in reader.closing:
                ways[edge.output] = 1 + reader.last_cycles + rests[edge.consumer.index]
        if ways:
            rest = max(rest, min(ways.values()) if its.deals else max(ways.values()))
        rests[number] = rest
    return rests


def busiest_units(
    plan: Plan, least: Sequence[Least], starts: Sequence[int], rests: Sequence[int]
) -> Iterator[tuple[str, Bound]]:
    """Yield the largest bound of each kind of units: ``compute``, ``memory`` and ``routing``.

    Proof. An operator has what its first element takes in cycle ``starts`` at the earliest, its
    unit does one thing after the other for ``cycles`` until its last element is sent, and the run
    goes on for ``rests`` after that. A unit that does nothing stands for the path through it: what
    the slowest first element takes to it, and the last one from it.
    """
    best: dict[str, Bound] = {}
    for node, its, start, rest in zip(plan.nodes, least, starts, rests, strict=True):
        cycles = start + its.cycles + rest
        known = best.get(node.operator.kind)
        if known is None or cycles > known.cycles:
            best[node.operator.kind] = Bound(cycles, node.name)
    yield from sorted(best.items())


def shared_memory(
    plan: Plan, least: Sequence[Least], starts: Sequence[int], rests: Sequence[int]
) -> Bound | None:
    """Return the bound by all that the off-chip memory moves; None where none is known.

    Proof. Take any of its clients. None of them hands a request over before the earliest of their
    ``starts``, and one of them sees its last one complete ``least_shared_cycles`` of all their
    requests after that at the soonest. It has not sent its last element before, and the run goes on
    for the least of their ``rests`` after that. Requests of others only make the queue longer. It
    holds for all clients, for those that start late and for those after which much is to be done:
    the largest of these counts.
    """
    memory = plan.program.hardware.hbm
    clients = [
        (start, rest, its.requests, node.operator.off_chip == "write")
        for node, its, start, rest in zip(plan.nodes, least, starts, rests, strict=True)
        if its.requests
    ]
    most = 0
    for key in (0, 1):
        clients.sort(key=lambda client: client[key], reverse=True)
        reads, writes = 0, 0
        start, rest = max(starts, default=0), max(rests, default=0)
        for its_start, its_rest, its_requests, is_write in clients:
            reads += 0 if is_write else its_requests
            writes += its_requests if is_write else 0
            start, rest = min(start, its_start), min(rest, its_rest)
            shared = least_shared_cycles(memory, reads, writes)
            most = max(most, start + shared + rest if shared else 0)
    return Bound(most, Cause.HBM.value) if most else None

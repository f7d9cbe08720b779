"""The routes of a program's channels over a mesh: how long each is, and which share a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fabric.engine.channel_counters import ONE_CYCLE, Hop
from fabric.network.links import Links
from fabric.wiring.broadcast import Broadcast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.network.links import SharedFlow
    from fabric.wiring.elaborate import Plan
    from fabric.wiring.floor import Floor

__all__ = ["Routes", "routes_of"]


class Routes(NamedTuple):
    """How the channels of a program go.

    Attributes:
        hops: of each channel, in edge order: one cycle within a site, that of its route elsewhere.
        network: the links; None where nothing has to wait for one.
        flows: of each channel; None of one that no link limits. Those from one Broadcast are one.
        trees: of each flow, in their order, its links by number, and its channels.
    """

    hops: Sequence[Hop]
    network: Links | None
    flows: Sequence[SharedFlow | None]
    trees: Sequence[tuple[Sequence[int], Sequence[int]]]


def routes_of(plan: Plan, floor: Floor) -> Routes:
    """Return the routes of the channels of ``plan`` over the mesh of ``floor``.

    Along the row first, then along the column; credits take as many cycles back. What a Broadcast
    sends goes over the links of all its routes once.
    """
    mesh = floor.mesh
    sites = [floor.site_of(node) for node in plan.nodes]
    hops: list[Hop] = []
    ways: dict[int, tuple[int, ...]] = {}
    # By who sends: a Broadcast, or one channel.
    trees: dict[tuple[int, int], list[int]] = {}
    for number, edge in enumerate(plan.edges):
        source, target = sites[edge.producer.index], sites[edge.consumer.index]
        if source == target:
            hops.append(ONE_CYCLE)
            continue
        ways[number], cycles = mesh.route(source, target)
        # Back it goes over other links, of which there are as many.
        hops.append(Hop(cycles, cycles))
        port = 0 if isinstance(edge.producer.operator, Broadcast) else edge.output
        trees.setdefault((edge.producer.index, port), []).append(number)
    limited: list[tuple[tuple[int, ...], list[int]]] = []
    for (producer, _), numbers in trees.items():
        links = ways[numbers[0]]
        if len(numbers) > 1:
            targets = [sites[plan.edges[number].consumer.index] for number in numbers]
            links = mesh.tree(sites[producer], targets).links
        if any(mesh.capacities[link] is not None for link in links):
            limited.append((links, numbers))
    flows: list[SharedFlow | None] = [None] * len(plan.edges)
    if not limited:
        return Routes(hops, None, flows, limited)
    network = Links(mesh.capacities, [links for links, _ in limited])
    for flow, (_, numbers) in zip(network.flows, limited, strict=True):
        for number in numbers:
            flows[number] = flow
    return Routes(hops, network, flows, limited)

"""What went over the network of a machine, whose run has ended."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from fabric.engine.networked_channel import NetworkedChannel
from fabric.state.network_use import LinkUse, NetworkUse, RouteUse

if TYPE_CHECKING:
    from fabric.machine.machine import Machine

__all__ = ["network_use"]


def network_use(machine: Machine) -> NetworkUse | None:
    """Return it; None where units have no sites."""
    floor, routes = machine.plan.floor, machine.routes
    if floor is None or routes is None:
        return None
    mesh = floor.mesh
    edges = machine.plan.edges
    used = []
    for edge, channel in zip(edges, machine.channels, strict=True):
        source, target = floor.site_of(edge.producer), floor.site_of(edge.consumer)
        if source != target:
            way = channel.way if isinstance(channel, NetworkedChannel) else None
            used.append(
                RouteUse(
                    channel.name,
                    tuple(source),
                    tuple(target),
                    channel.forward_cycles,
                    None if way is None else way.bytes_sent,
                    0 if way is None else way.links_cycles,
                )
            )
    carried: dict[int, int] = defaultdict(int)
    users: dict[int, list[str]] = defaultdict(list)
    for links, numbers in routes.trees:
        channel = machine.channels[numbers[0]]
        assert isinstance(channel, NetworkedChannel)
        for link in links:
            carried[link] += channel.way.bytes_sent
            users[link] += [edges[number].name for number in numbers]
    wired = {node.index for node in machine.plan.program.nodes}
    per_site = [
        sum(node.index in wired for node in nodes)
        for _, nodes in floor.units_at(machine.plan.nodes)
        if nodes
    ]
    return NetworkUse(
        placement=floor.file,
        sites=len(per_site),
        most_units=max(per_site),
        routes=tuple(used),
        links=tuple(
            LinkUse(mesh.link_name(link), carried[link], mesh.capacities[link], tuple(users[link]))
            for link in sorted(carried)
            if carried[link]
        ),
    )

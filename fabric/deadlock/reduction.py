"""Who can never go on: reduction of AND/OR waits, then the cores of what remains.

A cycle of waits is enough for a deadlock only where every wait needs all of its peers; where one
of several is enough (a merge), it takes a knot. Marking what can still be served covers both
(Barbosa and Benevides, A Graph-Theoretic Characterization of AND-OR Deadlocks).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = ["Need", "blocked", "cores"]


class Need(NamedTuple):
    """What a parked node waits for.

    Attributes:
        peers: nodes that could serve it.
        any_of: one of them is enough; else all are needed, and nobody can serve a wait that has
            no peers.
    """

    peers: tuple[int, ...]
    any_of: bool = False


def blocked(needs: Mapping[int, Need], live: Iterable[int]) -> set[int]:
    """Return the nodes of ``needs`` that can never go on, whatever the ``live`` ones do.

    A node that is in neither has ended and serves nobody.
    """
    waiters = defaultdict(list)
    missing = {}
    for node, need in needs.items():
        peers = set(need.peers)
        missing[node] = min(1, len(peers)) if need.any_of else len(peers)
        for peer in peers:
            waiters[peer].append(node)
    stuck = set(needs)
    reached = deque(dict.fromkeys(live))
    while reached:
        for node in waiters[reached.popleft()]:
            missing[node] -= 1
            if not missing[node] and node in stuck:
                stuck.remove(node)
                reached.append(node)
    return stuck


def cores(needs: Mapping[int, Need], stuck: set[int]) -> list[list[int]]:
    """Return the groups of ``stuck`` that wait for nobody outside of themselves.

    All the others wait behind them. Each group starts with its lowest node and goes on with the
    one that it waits for; groups are in the order of their lowest nodes.
    """
    if not stuck:
        return []
    import networkx as nx

    graph = nx.DiGraph()
    for node in sorted(stuck):
        graph.add_node(node)
        graph.add_edges_from((node, peer) for peer in needs[node].peers if peer in stuck)
    component = {}
    groups = list(nx.strongly_connected_components(graph))
    for number, group in enumerate(groups):
        for node in group:
            component[node] = number
    open_groups = {component[a] for a, b in graph.edges if component[a] != component[b]}
    closed = [group for number, group in enumerate(groups) if number not in open_groups]
    return sorted(_chain(needs, group) for group in closed)


def _chain(needs: Mapping[int, Need], group: set[int]) -> list[int]:
    """Order a group along its waits, depth first."""
    order: dict[int, None] = {}
    ahead = [min(group)]
    while ahead:
        node = ahead.pop()
        if node not in order:
            order[node] = None
            ahead += sorted(set(needs[node].peers) & group, reverse=True)
    return list(order)

"""Graphs with different numbers of neighbours per vertex: two data sets, a grid, random graphs.

Zachary's karate club: W. Zachary, An Information Flow Model for Conflict and Fission in Small
Groups, Journal of Anthropological Research, 1977. Les Miserables: D. Knuth, The Stanford GraphBase,
1993. Power law: A.-L. Barabasi and R. Albert, Emergence of Scaling in Random Networks, Science,
1999. All three are from networkx.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import networkx as nx
import numpy as np

from fabric import ConfigurationError

GraphName: TypeAlias = Literal["karate-club", "les-miserables", "grid", "power-law", "random"]

Graph: TypeAlias = Any
"""networkx has no types."""

NEIGHBOURS = 3
"""The neighbours of a new vertex of the power-law graph."""


def graph_named(name: GraphName, vertices: int, seed: int) -> Graph:
    """Return an undirected graph of networkx without loops. Its vertices are 0, 1, and so on.

    Args:
        name: ``grid`` is a square with up to four neighbours per vertex. In ``power-law``, a new
            vertex prefers neighbours that have many neighbours. In ``random``, every fourth vertex
            has no neighbour, and any two others are neighbours with equal probability.
        vertices: the number of vertices, except for ``karate-club`` (34) and ``les-miserables``
            (77).
        seed: for ``power-law`` and ``random``.
    """
    least = NEIGHBOURS + 1 if name == "power-law" else 0
    if vertices < least:
        raise ConfigurationError(f"vertices is {vertices}: expected at least {least} for {name}")
    if name == "karate-club":
        graph = nx.karate_club_graph()
    elif name == "les-miserables":
        graph = nx.les_miserables_graph()
    elif name == "grid":
        side = math.isqrt(vertices)
        if side * side != vertices:
            raise ConfigurationError(f"vertices is {vertices}: expected a square for a grid")
        graph = nx.grid_2d_graph(side, side)
    elif name == "power-law":
        graph = nx.barabasi_albert_graph(vertices, NEIGHBOURS, seed)
    else:
        graph = _random(vertices, seed)
    return nx.convert_node_labels_to_integers(graph)


def _random(vertices: int, seed: int) -> Graph:
    random = np.random.default_rng(seed)
    chance = 2 * NEIGHBOURS / max(vertices, 1)
    near = np.triu(random.random((vertices, vertices)) < chance, 1)
    near[::4] = near[:, ::4] = False
    graph = nx.empty_graph(vertices)
    graph.add_edges_from(np.argwhere(near).tolist())
    return graph

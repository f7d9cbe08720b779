"""Graphs for programs, made by networkx, as arrays of scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import networkx as nx
import numpy as np
from hypothesis import strategies as st

_MADE: Final[dict[str, Callable[[int, int], Any]]] = {
    "karate-club": lambda *_: nx.karate_club_graph(),
    "les-miserables": lambda *_: nx.les_miserables_graph(),
    "grid": lambda side, _: nx.grid_2d_graph(side, side),
    "power-law": lambda side, seed: nx.barabasi_albert_graph(side * side, 3, seed),
}


def adjacency(name: str, side: int, seed: int) -> Any:
    made = nx.to_scipy_sparse_array(_MADE[name](side, seed), weight=None, dtype=np.float64)
    return made.tocsr()


named = st.sampled_from(sorted(_MADE))

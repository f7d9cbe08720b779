"""The graphs of the studies, from equal to very unequal numbers of neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_VERTICES: Final = {"grid": 64, "karate-club": 34, "les-miserables": 77, "power-law": 128}

GRAPHS: Final[Mapping[str, Mapping[str, str | int]]] = {
    graph: {"graph": graph, "vertices": vertices} for graph, vertices in _VERTICES.items()
}
"""Parameters of each graph, by its name."""

"""The graphs of the studies, from even numbers of neighbours to very uneven ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fabric import Space, zipped

# What has its own number of vertices is given the one it has.
_SIZES: Final = {"grid": 64, "karate-club": 34, "les-miserables": 77, "power-law": 128}

GRAPHS: Final[Space] = zipped(graph=list(_SIZES), vertices=list(_SIZES.values()))
"""A space of the graphs."""


def groups(**values: object) -> Mapping[str, Mapping[str, object]]:
    """Return what names the points of each graph, with ``values``, by the name of the graph."""
    return {name: {"graph": name, **values} for name in _SIZES}

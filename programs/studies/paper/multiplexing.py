"""Regions that share the experts: the text's claims about figures 12 and 13."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from fabric import Findings
from paper.claims import number

ALL: Final = 128


def ratio(findings: Findings, metric: str, tiling: str, regions: int = 32) -> float:
    """Return a metric with shared regions, over its value with one region per expert."""
    shared = number(findings, metric, tiling=tiling, regions=regions)
    return shared / number(findings, metric, tiling=tiling, regions=ALL)


def overhead_percent(findings: Findings, tiling: str) -> float:
    """Return the percentage of cycles that shared regions add."""
    return 100 * (ratio(findings, "cycles", tiling) - 1)


CLAIMS: Final[Mapping[str, Callable[[Findings], float]]] = {
    "Static tiling: compute utilisation gain at 32 regions": partial(
        ratio, metric="compute_utilization", tiling="static"
    ),
    "Static tiling: overhead at 32 regions": partial(overhead_percent, tiling="static"),
    "Dynamic tiling: utilisation gain at 32 regions": partial(
        ratio, metric="compute_utilization", tiling="dynamic"
    ),
    "Dynamic tiling: overhead at 32 regions": partial(overhead_percent, tiling="dynamic"),
}
"""The claims about figure 12 that involve cycles, by their text in the table."""

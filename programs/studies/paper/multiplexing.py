"""Regions that share the experts: what the text claims of figures 12 and 13."""

from __future__ import annotations

from typing import Final

from fabric import Findings
from paper.claims import number

ALL: Final = 128


def ratio(findings: Findings, metric: str, tiling: str, regions: int = 32) -> float:
    """Return a metric with shared regions, by what it is with one region an expert.

    Raises:
        ConfigurationError: one of them did not complete.
    """
    shared = number(findings, metric, tiling=tiling, regions=regions)
    return shared / number(findings, metric, tiling=tiling, regions=ALL)


def overhead_percent(findings: Findings, tiling: str, regions: int) -> float:
    """Return how many per cent more cycles shared regions take.

    Raises:
        ConfigurationError: one of them did not complete.
    """
    return 100 * (ratio(findings, "cycles", tiling, regions) - 1)

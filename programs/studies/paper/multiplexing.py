"""Regions that share the experts: the text's claims about figures 12 and 13."""

from __future__ import annotations

from typing import Final

from fabric import Findings
from paper.claims import number

ALL: Final = 128


def ratio(findings: Findings, metric: str, tiling: str, regions: int = 32) -> float:
    """Return a metric with shared regions, over its value with one region per expert."""
    shared = number(findings, metric, tiling=tiling, regions=regions)
    return shared / number(findings, metric, tiling=tiling, regions=ALL)


def overhead_percent(findings: Findings, tiling: str, regions: int) -> float:
    """Return the percentage of cycles that shared regions add."""
    return 100 * (ratio(findings, "cycles", tiling, regions) - 1)

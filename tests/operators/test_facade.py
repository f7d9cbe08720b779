"""What the package offers by name."""

from __future__ import annotations

import operators


def test_star() -> None:
    """``import *`` brings the operators and functions, and leaves Python's own names alone."""
    offered = set(operators.__all__)

    assert {"Map", "Zip", "Broadcast", "INTEGER", "narrow"} <= offered
    assert not offered & {"map", "zip", "functions", "annotations"}

"""Measurements, off by default: ``python -m pytest -m benchmark tests/benchmarks``."""

from __future__ import annotations

import sys
from pathlib import Path

# The studies import modules from this folder.
sys.path.insert(0, str(Path(__file__).parents[2] / "programs/studies"))

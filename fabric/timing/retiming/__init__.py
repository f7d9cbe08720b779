"""Records of runs: the events of each unit, and their cycles under other depths."""

from __future__ import annotations

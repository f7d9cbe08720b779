"""Channels, clocks, units and memories, which decide the cycles of a run."""

from __future__ import annotations

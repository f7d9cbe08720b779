"""Channels, clocks, units and memories: what takes cycles, and how many."""

from __future__ import annotations

"""Models of off-chip memory, which decide the cycles of bursts."""

from __future__ import annotations

"""Runs that are held in a cycle: their events up to the cycle, and the resulting state."""

from __future__ import annotations

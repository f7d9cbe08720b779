"""The state of a run at a cycle, as data for all rooms except the engine."""

from __future__ import annotations

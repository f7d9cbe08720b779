"""Models of off-chip memory: which there are, and when each has answered a burst."""

from __future__ import annotations

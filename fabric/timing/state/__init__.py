"""The state of a run at a cycle, as data: what everyone but the engine reads."""

from __future__ import annotations

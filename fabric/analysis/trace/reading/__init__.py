"""The trace of a run, opened as tables."""

from __future__ import annotations

"""The trace of a run, read into tables."""

from __future__ import annotations

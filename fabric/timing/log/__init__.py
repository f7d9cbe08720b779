"""Transfers and states that follow from the log of a run, and a window of its rows."""

from __future__ import annotations

"""Analyses of a trace: cycles by cause, roots of waits, bounds of the run."""

from __future__ import annotations

"""Runs that are held in a cycle: what was told of them up to there, and the state that makes."""

from __future__ import annotations

"""Layouts of streams: which coordinates of a tensor each tile holds, in which order, how often."""

from __future__ import annotations

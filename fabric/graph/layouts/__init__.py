"""Layouts of streams: the coordinates of a tensor that each tile holds, and their order."""

from __future__ import annotations

"""Tensors, their cutting into tiles and their walks, and the contents of single tiles."""

from __future__ import annotations

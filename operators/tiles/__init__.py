"""Tensors, how they are cut into tiles and walked, and what single tiles hold."""

from __future__ import annotations

"""Operators that the fabric puts into programs itself, and that users wire, too."""

from __future__ import annotations

from fabric import Broadcast, Initial

__all__ = ["Broadcast", "Initial"]

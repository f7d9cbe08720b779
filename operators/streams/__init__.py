"""Reading of streams by operators: iteration, bare stops, tuples."""

from __future__ import annotations

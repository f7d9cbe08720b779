"""Which design to build: many runs of one program, the front of the best, and what tells it."""

from __future__ import annotations

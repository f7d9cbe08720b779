"""Guards against mistakes in users' operators, memories and observers."""

from __future__ import annotations

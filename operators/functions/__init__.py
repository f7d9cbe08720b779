"""Hardware functions for Map, Accum, Scan and FlatMap, with their cost."""

from __future__ import annotations

"""Studies: many runs of one program, and the front of its best designs."""

from __future__ import annotations

"""Other forms of a trace: Perfetto, VCD, JSON lines, CSV."""

from __future__ import annotations

"""Operations of operators on streams: read them, handle stops, unpack tuples for functions."""

from __future__ import annotations

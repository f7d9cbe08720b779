"""What operators do with streams: read them, mind stops, unpack what functions are given."""

from __future__ import annotations

"""What operators do with streams: read several together, mind stops, unpack and fold elements."""

from __future__ import annotations

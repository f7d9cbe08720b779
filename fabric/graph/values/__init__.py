"""Values of streams: tiles, selectors and buffers, their types, dimensions and shapes."""

from __future__ import annotations

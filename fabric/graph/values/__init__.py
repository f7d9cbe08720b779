"""What streams carry: tiles, selectors and buffers, their types, dimensions and shapes."""

from __future__ import annotations

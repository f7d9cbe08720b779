"""Words for the orders of streams: what ``Operator.layouts`` is given and returns."""

from __future__ import annotations

from typing import TypeAlias

from fabric import Layout, StreamType

__all__ = ["Orders", "Types"]

Orders: TypeAlias = tuple[Layout | str, ...]
"""Of each stream its layout, or in words why there is none."""

Types: TypeAlias = tuple[StreamType, ...]

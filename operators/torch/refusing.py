"""The refusal of a call."""

from __future__ import annotations

__all__ = ["UnsupportedError"]


class UnsupportedError(Exception):
    """A call that cannot be imported; says what would be needed."""

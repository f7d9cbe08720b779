"""Pieces of sentences that several messages share."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["one_of"]


def one_of(known: Sequence[str], found: str) -> str:
    """Return ``one of a, b, c``, with the closest to ``found`` asked about where one is close."""
    close = difflib.get_close_matches(found, known, n=1)
    question = f" (did you mean {close[0]}?)" if close else ""
    return f"one of {', '.join(known)}{question}"

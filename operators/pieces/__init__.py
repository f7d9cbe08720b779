"""Programs in physical pieces, as in the paper's hardware description."""

from __future__ import annotations

from operators.pieces.lowering import in_pieces

__all__ = ["in_pieces"]

"""Programs in physical pieces: operators as the paper's hardware description builds them."""

from __future__ import annotations

from operators.pieces.lowering import in_pieces

__all__ = ["in_pieces"]

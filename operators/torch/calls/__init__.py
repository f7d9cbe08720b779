"""How calls are imported: one module for each family, registered when it is imported here."""

from __future__ import annotations

from operators.torch.calls import (
    attention,
    convolution,
    elementwise,
    experts,
    indexing,
    loops,
    products,
    reductions,
    views,
)

__all__ = [
    "attention",
    "convolution",
    "elementwise",
    "experts",
    "indexing",
    "loops",
    "products",
    "reductions",
    "views",
]

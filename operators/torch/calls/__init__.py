"""How calls are imported: one module for each family, registered when it is imported here."""

from __future__ import annotations

from operators.torch.calls import (
    attention,
    convolution,
    elementwise,
    joining,
    products,
    reductions,
    rows,
    tables,
    views,
)

__all__ = [
    "attention",
    "convolution",
    "elementwise",
    "joining",
    "products",
    "reductions",
    "rows",
    "tables",
    "views",
]

"""How calls are imported: one module for each family, registered when it is imported here."""

from __future__ import annotations

from operators.torch.calls import elementwise, joining, products, reductions, rows, tables, views

__all__ = ["elementwise", "joining", "products", "reductions", "rows", "tables", "views"]

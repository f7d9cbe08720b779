"""How calls are imported: one module for each family, registered when it is imported here."""

from __future__ import annotations

from operators.torch.calls import (  # noqa: F401 - each registers its importers
    attention,
    elementwise,
    empty,
    experts,
    grouped,
    indexing,
    loops,
    ordering,
    pairs,
    pooling,
    products,
    reductions,
    tables,
    views,
)

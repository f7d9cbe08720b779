"""The importers of calls: one module for each family. Importing a module registers its calls."""

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

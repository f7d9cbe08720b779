"""Outputs: what a model gives goes to off-chip memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Stream
from fabric.extend import dtype_name
from operators.kernels.following import followed, readable, rows_layout
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import View
from operators.linear_off_chip_store import LinearOffChipStore
from operators.metadata import Metadata
from operators.random_off_chip_store import RandomOffChipStore
from operators.streams.dimensions import redimensioned
from operators.through_memory import matrix_of
from operators.tiles.tensor import Tensor

__all__ = ["Store"]


class Store(Kernel):
    """Store a tensor, in its own shape."""

    family: ClassVar = "store"

    def __init__(self, name: str, operand: Operand, shape: tuple[int, ...]) -> None:
        """Store ``operand`` as ``name``, under ``shape``, which may have no dimension."""
        self.name = name
        self.shape = shape
        self.operands = (operand,)
        self.results = ()

    @staticmethod
    def of(name: str, view: View, schedule: Schedule) -> Store:
        """Return what stores ``view`` as it comes, or in tiles of neighbouring rows."""
        shape = view.shape
        view = view.reshaped(shape or (1,))
        layout = followed((view,), view.shape, schedule, whole_rows=False)
        lead = list(zip(layout.tile[:-1], layout.shape[:-1], strict=True))
        first = next((dim for dim, (tile, _) in enumerate(lead) if tile > 1), len(lead))
        if any(tile != size for tile, size in lead[first + 1 :]):
            wish = rows_layout(view.shape, schedule.tile_rows, view.shape[-1])
            layout = readable((view,), wish, whole_rows=False)
        rows = rows_layout(view.shape, 1, view.shape[-1])
        if not _stays_on_chip(view, layout) and _stays_on_chip(view, rows):
            layout = rows
        return Store(name, Operand(view, layout), shape)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (stream,) = inputs
        assert isinstance(stream, Stream)
        (operand,) = self.operands
        layout, shape = operand.layout, self.shape
        assert layout is not None
        rows = math.prod(shape[:-1])
        if _in_order(layout, rows):
            down = rows // layout.rows
            LinearOffChipStore(self.name, shape, name=f"store_{self.name}")(
                redimensioned(stream, (1, down, layout.count // down))
            )
            return ()
        found = matrix_of(layout)
        places = Metadata(found.numbers)()
        before = Tensor(
            shape,
            lambda: np.zeros(shape, operand.view.dtype),
            dtype=dtype_name(operand.view.dtype),
        ).viewed(found.shape)
        data = redimensioned(stream, (1, layout.count))
        RandomOffChipStore(self.name, before, found.tile, name=f"store_{self.name}")(places, data)
        return ()


def _stays_on_chip(view: View, layout: Layout) -> bool:
    """Whether a kernel's tiles come to be these without a way through off-chip memory."""
    pulled = view.pull(layout)
    return pulled is not None and pulled.layout.shape == view.source.shape


def _in_order(layout: Layout, rows: int) -> bool:
    """Whether tiles come side by side until a row of them is whole, and every one once."""
    tiled = Layout.tiled(layout.shape, layout.tile)
    return rows % layout.rows == 0 and bool(layout.same_order(tiled))

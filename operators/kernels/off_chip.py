"""Kernels at off-chip memory: load rows of an embedding or another table, and store outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Layout, Stream
from fabric.extend import dtype_name
from operators.accum import Accum
from operators.convert import matrix_of
from operators.functions.retile import RetileRow
from operators.kernels.following import followed, readable, rows_layout
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.off_chip_load import RandomOffChipLoad
from operators.off_chip_store import LinearOffChipStore, RandomOffChipStore
from operators.shape import redimensioned
from operators.sources import Metadata
from operators.tiles.tensor import Tensor


class Gather(Kernel):
    """Load known rows of a table ``[V, D]`` one by one, and pack them to tiles of rows.

    A row is loaded as often as its number occurs.
    """

    family: ClassVar = "gather"

    def __init__(
        self, name: str, table: Stored, numbers: NDArray[np.int64], schedule: Schedule
    ) -> None:
        """Return ``[*numbers.shape, D]``, in tiles of the schedule's rows."""
        self.table, self.numbers = table, numbers
        shape = (*numbers.shape, table.shape[1])
        layout = rows_layout(shape, schedule.tile_rows, table.shape[1])
        self._layout = layout
        super().__init__(name, (), Computed(name, shape, table.dtype, layout))

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        layout, tile = self._layout, (1, self.table.shape[1])
        # Tiles hold neighbouring rows, so the order of the numbers is the order of the rows.
        numbers = self.numbers.reshape(layout.count, layout.rows)
        places = Metadata(numbers, name=f"{self.name}_numbers")()
        rows = RandomOffChipLoad(self.table.tensor, tile, name=self.name)(places)
        packed = Accum(RetileRow(), name=f"{self.name}_pack")(rows)
        return (redimensioned(packed, (1, *layout.trips)),)


class Store(Kernel):
    """Store a tensor in its own ``shape``, which may have no dimension."""

    family: ClassVar = "store"

    def __init__(self, name: str, operand: Operand, shape: tuple[int, ...]) -> None:
        super().__init__(name, (operand,))
        self.shape = shape

    @staticmethod
    def of(name: str, view: View, schedule: Schedule) -> Store:
        """Store ``view`` in the order in which it arrives, or by neighbouring rows."""
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
        matrix = matrix_of(layout)
        places = Metadata(matrix.numbers)()
        before = Tensor(
            shape, lambda: np.zeros(shape, operand.view.dtype), dtype=dtype_name(operand.view.dtype)
        ).viewed(matrix.shape)
        data = redimensioned(stream, (1, layout.count))
        RandomOffChipStore(self.name, before, matrix.tile, name=f"store_{self.name}")(places, data)
        return ()


def _stays_on_chip(view: View, layout: Layout) -> bool:
    """Whether a kernel's tiles can be converted to ``layout`` on chip."""
    pulled = view.pull(layout)
    return pulled is not None and pulled.layout.shape == view.source.shape


def _in_order(layout: Layout, rows: int) -> bool:
    """Whether each tile arrives once, in row-major order of the matrix."""
    tiled = Layout.tiled(layout.shape, layout.tile)
    return rows % layout.rows == 0 and bool(layout.same_order(tiled))

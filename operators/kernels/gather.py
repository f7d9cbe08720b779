"""Rows of a stored table by numbers that are known: embeddings, and tables of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from operators.accum import Accum
from operators.functions.retile import RetileRow
from operators.kernels.following import rows_layout
from operators.kernels.kernel import Kernel, Streams
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored
from operators.metadata import Metadata
from operators.random_off_chip_load import RandomOffChipLoad
from operators.streams.dimensions import redimensioned

__all__ = ["Gather"]


class Gather(Kernel):
    """Load rows of a table one by one, and pack them to tiles of rows.

    Each row passes off-chip memory as often as its number is given.

    Attributes:
        table: ``[V, D]``.
        numbers: of its rows, of any shape.
    """

    family: ClassVar = "gather"

    def __init__(
        self, name: str, table: Stored, numbers: NDArray[np.int64], schedule: Schedule
    ) -> None:
        """Give ``[*numbers.shape, D]``, in tiles of the schedule's rows."""
        self.name, self.table, self.numbers = name, table, numbers
        self.operands = ()
        shape = (*numbers.shape, table.shape[1])
        layout = rows_layout(shape, schedule.tile_rows, table.shape[1])
        self._layout = layout
        self.results = (Computed(name, shape, table.dtype, layout),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        layout, tile = self._layout, (1, self.table.shape[1])
        # Tiles hold neighbouring rows, so that the numbers in their order are those of the tiles.
        numbers = self.numbers.reshape(layout.count, layout.rows)
        places = Metadata(numbers, name=f"{self.name}_numbers")()
        rows = RandomOffChipLoad(self.table.tensor, tile, name=self.name)(places)
        packed = Accum(RetileRow(), name=f"{self.name}_pack")(rows)
        return (redimensioned(packed, (1, *layout.trips)),)

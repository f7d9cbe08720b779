"""What an operator costs, before anything runs: integers, or expressions of the data's sizes.

Two accountings: the paper's equations by element type (section 4.2), and what the authors
plotted, in which stores and accumulators take 4 bytes an element (``artifact``).
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric.values.dims import Dim, product
from fabric.values.stream_type import BufferType, TileType, TupleType, ValueType
from fabric.values.value import ADDRESS_DTYPE

__all__ = ["ARTIFACT_BYTES", "Costs", "artifact_bytes"]

ARTIFACT_BYTES = 4
"""Bytes an element takes in stores and accumulators in the artifact's accounting."""


@dataclass(frozen=True)
class Costs:
    """Costs of one operator over the whole program.

    Attributes:
        load_bytes, store_bytes: off-chip traffic, tile bytes without request rounding.
        on_chip_bytes: requirement by the paper's equations.
        flops: floating-point operations.
        artifact_store_bytes, artifact_on_chip_bytes: as the authors summed them.
        artifact_fifo_bytes: what they add to it where FIFOs count.
    """

    load_bytes: Dim = 0
    store_bytes: Dim = 0
    on_chip_bytes: Dim = 0
    flops: Dim = 0
    artifact_store_bytes: Dim = 0
    artifact_on_chip_bytes: Dim = 0
    artifact_fifo_bytes: Dim = 0


def artifact_bytes(value: ValueType) -> Dim:
    """Return the bytes of an element as the authors counted them: tiles of numbers as float32."""
    if isinstance(value, TileType):
        as_it_is = value.dtype == ADDRESS_DTYPE or value.dtype.kind == "b"
        itemsize = value.dtype.itemsize if as_it_is else ARTIFACT_BYTES
        return value.size_elements * itemsize
    if isinstance(value, BufferType):
        return product(value.shape) * artifact_bytes(value.tile)
    if isinstance(value, TupleType):
        return sum(map(artifact_bytes, value.items))
    return value.size_bytes

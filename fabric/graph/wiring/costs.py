"""Costs, least work and off-chip tensors of operators, known before a run.

Costs are integers or expressions of sizes. There are two accountings. The equations of the paper
(section 4.2) use the element types. In ``artifact``, which the authors plotted, stores and
accumulators take 4 bytes an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.graph.arguments.described import Described
from fabric.graph.hardware.description import OffChipDescription
from fabric.graph.hardware.least_cycles import least_burst_cycles
from fabric.graph.values.dims import Dim, Totals, dim_text, is_static, product, with_totals
from fabric.graph.values.expression import total
from fabric.graph.values.stream_type import BufferType, StreamType, TileType, TupleType, ValueType
from fabric.graph.values.value import ADDRESS_DTYPE, row_bytes
from fabric.messages.place import is_ours

ARTIFACT_BYTES = 4
"""Bytes of an element in stores and accumulators, in the accounting ``artifact``."""


@dataclass(frozen=True)
class Costs:
    """Costs of one operator over the whole program.

    Attributes:
        load_bytes, store_bytes: off-chip traffic: bytes of tiles, not rounded to requests.
        on_chip_bytes: the on-chip memory that the paper's equations require.
        flops: floating-point operations.
        artifact_store_bytes, artifact_on_chip_bytes: the same quantities in ``artifact``.
        artifact_fifo_bytes: on-chip bytes that the authors add if they count FIFOs.
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
        is_number = value.dtype != ADDRESS_DTYPE and value.dtype.kind != "b"
        return value.size_elements * (ARTIFACT_BYTES if is_number else value.dtype.itemsize)
    if isinstance(value, BufferType):
        return product(value.shape) * artifact_bytes(value.tile)
    if isinstance(value, TupleType):
        return sum(map(artifact_bytes, value.items))
    return value.size_bytes


NEEDS: TypeAlias = Literal["all", "any", "selected", "none"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Lower bounds of an operator's work, if its streams have the sizes in their types.

    All cycles pass on the operator's own unit: it charges them, or waits for its own bursts. Bare
    stops are not counted as elements. A number that depends on symbols is unknown.

    Attributes:
        cycles: from the arrival of the elements in ``needs`` until the last element is sent to
            each output in ``late``; without outputs, until the operator ends.
        first_cycles: from the arrival of the elements in ``needs`` until the first element is
            sent, if no input has an empty group.
        last_cycles: from the arrival of the last element of an input in ``closing`` until the last
            element is sent to each output in ``late``; without outputs, until the operator ends.
        delay_cycles: a sent element is visible this much later than after a hop of one cycle. In
            this time the unit continues, and its outputs may end.
        pace_cycles: between two elements that are sent to the same output.
        passes: elements sent to the same output use different elements of the first input.
        pads: as ``passes``, but the operator adds elements after the first input has ended.
        gathers: elements of the first input for each sent element, if no input has an empty group;
            0 if unknown.
        needs: inputs from which the first sent element takes an element: ``all``, ``any`` one,
            ``selected`` (the last input, and the input that it selects) or ``none``.
        closing: each output in ``late`` waits for the last elements of these inputs; None for all.
        late: outputs to which ``cycles`` and ``last_cycles`` apply; None for all.
        sees: inputs that have to end before the outputs end; None for all.
        holds: the last element to each output in ``late`` is sent after the inputs in ``sees`` end.
        deals: each element is sent to only some of the outputs. Statements about the outputs in
            ``late`` are then true for at least one of these outputs.
        tile: the tile of each burst; None if the operator is not a client of the off-chip memory.
        bursts: the number of bursts.
        in_memory: all sent tiles, also tiles in buffers, are in a memory unit. A reader loads them
            from there.
    """

    cycles: Dim = 0
    first_cycles: Dim = 0
    last_cycles: Dim = 0
    delay_cycles: Dim = 0
    pace_cycles: Dim = 0
    passes: bool = False
    pads: bool = False
    gathers: Dim = 0
    needs: NEEDS = "all"
    closing: tuple[int, ...] | None = None
    late: tuple[int, ...] | None = None
    sees: tuple[int, ...] | None = None
    holds: bool = False
    deals: bool = False
    tile: TileType | None = None
    bursts: Dim = 0
    in_memory: bool = False

    @classmethod
    def each(cls, count: Dim, cycles: int, **others: Any) -> Work:
        """Return work of ``cycles`` for each of ``count`` elements, one after the other."""
        others |= dict.fromkeys(("first_cycles", "last_cycles", "pace_cycles"), cycles)
        return cls(cycles=count * cycles, **others)


@dataclass(frozen=True)
class Rates:
    """The peak rates of the hardware that an operator runs on.

    Attributes:
        flops_per_cycle: of its compute unit; 0 without arithmetic.
        bytes_per_cycle: of each port between its unit and an on-chip memory.
        off_chip: whether the operator reads or writes off-chip ``memory``; None if neither.
        in_memory: for each input, whether all its tiles are in a memory unit.
        totals: the values of sums of sizes that the program states.
    """

    flops_per_cycle: int
    bytes_per_cycle: int
    memory: OffChipDescription
    off_chip: Literal["read", "write"] | None
    in_memory: tuple[bool, ...]
    totals: Totals = field(default_factory=dict)

    def together(self, streams: Iterable[StreamType]) -> Dim:
        """Return the number of elements in all ``streams``."""
        return with_totals(total(stream.count for stream in streams), self.totals)

    def is_ours(self, function: object) -> bool:
        """Whether the class of ``function`` is the fabric's own, so that its work is known."""
        return is_ours(type(function))

    def compute(self, function: Any, *operands: ValueType) -> int:
        """Return the cycles of ``function`` for one element; 0 if unknown."""
        if not is_ours(type(function)):
            return 0
        fixed_cycles: int | None = function.fixed_cycles
        if fixed_cycles is not None:
            return fixed_cycles
        flops = function.flops(*operands)
        if not isinstance(flops, int) or not self.flops_per_cycle:
            return 0
        return -(-flops // self.flops_per_cycle)

    def load(self, inputs: Sequence[StreamType]) -> int:
        """Return the cycles of loading an element of each input, one after the other."""
        return sum(
            self.transfer(stream.value)
            for stream, in_memory in zip(inputs, self.in_memory, strict=True)
            if in_memory and isinstance(stream.value, TileType)
        )

    def transfer(self, value: ValueType) -> int:
        """Return the cycles of ``value`` through a port; 0 if its size is unknown."""
        size_bytes = value.size_bytes
        return -(-size_bytes // self.bytes_per_cycle) if isinstance(size_bytes, int) else 0

    def requests(self, tile: TileType) -> int | None:
        """Return the requests for a tile, at least one for each row; None if unknown."""
        if not isinstance(tile.rows, int) or not isinstance(tile.cols, int):
            return None
        return tile.rows * -(-row_bytes(tile.cols, tile.dtype) // self.memory.request_bytes)

    def burst(self, tile: TileType) -> int:
        """Return the fewest cycles from the request of an off-chip tile to its completion.

        0 if the size is unknown, or if the model of the memory is a user's.
        """
        requests = self.requests(tile)
        if not requests:
            return 0
        return least_burst_cycles(self.memory, requests, write=self.off_chip == "write")

    def bursts(self, tiles: StreamType, *, in_memory: bool = False) -> Work:
        """Return the work of an operator that loads or stores ``tiles``, one burst after the other.

        Args:
            tiles: one for each burst.
            in_memory: the sent tiles are in a memory unit.
        """
        assert isinstance(tiles.value, TileType)
        count, tile = tiles.count, tiles.value
        return Work.each(count, self.burst(tile), tile=tile, bursts=count, in_memory=in_memory)


@dataclass(frozen=True)
class OffChipTensor(Described):
    """A tensor in off-chip memory; all its dimensions except the last are rows.

    Attributes:
        shape: outermost first, with symbols for sizes that depend on data; empty for one number.
        source: the object that is read. Operators that read the same object with the same shape
            and ``dtype`` share its addresses.
        output: the name of the written output. Operators that write to it share its addresses.
        tile: rows and columns of a tile; ``ports.burst`` receives the row-major number of each
            tile. If the number of rows depends on data, tiles are numbered as if they had one row.
            If ``tile`` is None, ``ports.burst`` receives the first byte of each burst.
        width: columns of the matrix that is cut into tiles; None for the last dimension of
            ``shape``.
    """

    shape: tuple[Dim, ...]
    dtype: np.dtype
    source: object = None
    output: str | None = None
    tile: tuple[Dim, int] | None = None
    width: int | None = None

    @override
    def _faults(self) -> Iterator[str]:
        (rows, cols), width = self.tile or (1, 1), self.columns
        if self.tile and (rows == 0 or cols < 1 or not is_static(width) or width % cols):
            cut = f"are cut into tiles of {dim_text(rows)}x{cols}"
            expected = "a number of columns that tiles divide"
            yield f"rows of length {dim_text(width)} {cut}: expected {expected}"

    @property
    def columns(self) -> Dim:
        """Columns of the matrix that is cut into tiles."""
        return (self.shape or (1,))[-1] if self.width is None else self.width

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all elements."""
        *outer, cols = self.shape or (1,)
        return product((*outer, row_bytes(cols, self.dtype)))

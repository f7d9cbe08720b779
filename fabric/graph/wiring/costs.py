"""Costs, least work and off-chip tensors of operators, known before a run.

Costs are integers or expressions of sizes, in two accountings: the equations of the paper by
element type (section 4.2), and ``artifact``, which the authors plotted: stores and accumulators
take 4 bytes an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.graph.arguments.described import Described, refuse
from fabric.graph.hardware.description import OffChipDescription
from fabric.graph.hardware.least_cycles import least_burst_cycles
from fabric.graph.values.dims import Dim, Totals, dim_text, is_static, product, with_totals
from fabric.graph.values.expression import total
from fabric.graph.values.stream_type import BufferType, StreamType, TileType, TupleType, ValueType
from fabric.graph.values.value import ADDRESS_DTYPE, row_bytes
from fabric.messages.telling.place import is_own

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


NEEDS: TypeAlias = Literal["all", "any", "selected", "none"]

WORK_NUMBERS: Final = (
    "cycles",
    "first_cycles",
    "last_cycles",
    "delay_cycles",
    "pace_cycles",
    "gathers",
    "bursts",
)
"""What of ``Work`` is a number, or an expression of the sizes that data decide."""


class Costed(Protocol):
    """The part of a hardware function that its cycles depend on."""

    @property
    def fixed_cycles(self) -> int | None:
        """Cycles per element of any size; None if ``flops`` decides."""
        ...

    def flops(self, *inputs: ValueType) -> Dim:
        """Return the operations for one element."""
        ...


@dataclass(frozen=True, kw_only=True)
class Work:
    """Lower bounds of an operator's work, if its streams are as their types say.

    All cycles are those of its own unit: charged there, or waited there for its own bursts. An
    element is a value here, and no bare stop. A number that hangs on symbols is not known.

    Attributes:
        cycles: from when its first element is there until it has sent the last one to each output
            in ``late``; where it has no outputs, until it ends.
        first_cycles: from when all is there that its first element takes, until that is sent;
            where no group of its inputs is empty.
        last_cycles: from when the last element of an input in ``closing`` is there, until it has
            sent the last one to each output in ``late``; where it has no outputs, until it ends.
        delay_cycles: how much later than after a hop of one cycle what it sends is visible; its
            unit goes on, and its outputs may end, before that.
        pace_cycles: between two elements that it sends to the same output.
        passes: each element that it sends to one output is for another one of its first input.
        pads: it passes so, but for what it makes up when its first input has ended.
        gathers: for how many of its first input each element is that it sends, where no group of
            its inputs is empty; 0 where that is not known.
        needs: what its first element takes: one of ``all`` its inputs, of ``any`` one, of the last
            one and any of the others where that has ``selected`` them, or ``none``.
        closing: the inputs whose last element each output in ``late`` waits for; all where None.
        late: outputs; all where None.
        sees: inputs whose end it sees before it ends its outputs; all where None.
        holds: it sends the last element to each output in ``late`` when it has seen these ends.
        deals: each element goes to some of the outputs: what is said of all in ``late`` holds for
            one of them.
        tile: what each of its bursts moves; None where it is no client of the off-chip memory.
        bursts: how many it has in all.
        in_memory: all tiles that it sends, those in buffers too, are in a memory unit, from where a
            reader loads them.
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


@dataclass(frozen=True)
class Rates:
    """The peak rates of the hardware that an operator runs on.

    Attributes:
        flops_per_cycle: of its compute unit; 0 where it has no arithmetic.
        bytes_per_cycle: of each port between its unit and an on-chip memory.
        memory: the off-chip memory.
        off_chip: what the operator does with it, as ``Operator.off_chip`` says.
        in_memory: of each input, whether all its tiles are in a memory unit.
        totals: what several sizes are together.
    """

    flops_per_cycle: int
    bytes_per_cycle: int
    memory: OffChipDescription
    off_chip: Literal["read", "write"] | None
    in_memory: tuple[bool, ...]
    totals: Totals = field(default_factory=dict)

    def together(self, streams: Iterable[StreamType]) -> Dim:
        """Return how many elements ``streams`` have together."""
        return with_totals(total(each.count for each in streams), self.totals)

    def is_ours(self, function: object) -> bool:
        """Whether ``function`` does what it says; a user's may be changed by what it overrides."""
        return is_own(function)

    def compute(self, function: Costed, *operands: ValueType) -> int:
        """Return the cycles of ``function`` for one element; 0 where they are not known."""
        if not is_own(function):
            return 0
        if function.fixed_cycles is not None:
            return function.fixed_cycles
        flops = function.flops(*operands)
        if not isinstance(flops, int) or not self.flops_per_cycle:
            return 0
        return -(-flops // self.flops_per_cycle)

    def load(self, inputs: Sequence[StreamType]) -> int:
        """Return the cycles of loading an element of each input, one after the other."""
        return sum(
            self.transfer(each.value)
            for each, in_memory in zip(inputs, self.in_memory, strict=True)
            if in_memory and isinstance(each.value, TileType)
        )

    def transfer(self, value: ValueType) -> int:
        """Return the cycles of ``value`` through a port; 0 where its size is not known."""
        size_bytes = value.size_bytes
        return -(-size_bytes // self.bytes_per_cycle) if isinstance(size_bytes, int) else 0

    def requests(self, tile: TileType) -> int | None:
        """Return the requests that a tile takes: a row is never merged with the next one.

        None where its size is not known.
        """
        if not isinstance(tile.rows, int) or not isinstance(tile.cols, int):
            return None
        return tile.rows * -(-row_bytes(tile.cols, tile.dtype) // self.memory.request_bytes)

    def burst(self, tile: TileType) -> int:
        """Return the cycles from handing a tile to the off-chip memory to seeing it complete.

        0 where the size is not known, or the memory is a user's.
        """
        requests = self.requests(tile)
        if not requests:
            return 0
        return least_burst_cycles(self.memory, requests, write=self.off_chip == "write")

    def bursts(self, tiles: StreamType, *, in_memory: bool = False) -> Work:
        """Return the work of who hands tiles to the off-chip memory, one after the other.

        Args:
            tiles: loaded or stored, each in a burst of its own.
            in_memory: see ``Work``.
        """
        assert isinstance(tiles.value, TileType)
        cycles = self.burst(tiles.value)
        return Work(
            cycles=tiles.count * cycles,
            first_cycles=cycles,
            last_cycles=cycles,
            pace_cycles=cycles,
            tile=tiles.value,
            bursts=tiles.count,
            in_memory=in_memory,
        )


@dataclass(frozen=True)
class OffChipTensor(Described):
    """What an off-chip operator reads or writes: a tensor whose dimensions but the last are rows.

    Attributes:
        shape: outermost first; symbols where data decide; empty for a single number.
        dtype: the element type.
        source: the object that is read: operators that read the same one, as elements of one
            type, find it in one place.
        output: the name of what is written: operators that write to one output share its place.
        tile: rows and columns of the tiles that ``ports.burst`` is told the numbers of, row-major;
            where data decide how many rows they have, it is told the numbers of tiles of one row;
            where None, the first byte of each burst.
        width: columns of the matrix that is cut into these tiles, where it is not the last
            dimension of ``shape``.
    """

    shape: tuple[Dim, ...]
    dtype: np.dtype
    source: object = None
    output: str | None = None
    tile: tuple[Dim, int] | None = None
    width: int | None = None

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tile is None:
            return
        rows, cols = self.tile
        width = self.columns
        if rows == 0 or cols < 1 or not is_static(width) or width % cols:
            refuse(
                f"OffChipTensor: rows of length {dim_text(width)} are cut into tiles of "
                f"{dim_text(rows)}x{cols}: "
                "expected a number of columns that tiles divide"
            )

    @property
    def columns(self) -> Dim:
        """Of the matrix that is cut into tiles."""
        return (self.shape or (1,))[-1] if self.width is None else self.width

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all its elements."""
        *outer, cols = self.shape or (1,)
        return product((*outer, row_bytes(cols, self.dtype)))

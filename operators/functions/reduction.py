"""What a reduction is: an accumulator that starts, is updated by every element, and is emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from fabric import Dim, Layout
from fabric.extend import Bounds, ComputeUnit, Described, Loop, Value, ValueType
from operators.functions.base import Operand, tile_types

__all__ = ["Reduction", "State"]

State: TypeAlias = Any
"""What a reduction remembers: each has its own, which only it looks at."""


@dataclass(frozen=True)
class Reduction(Described):
    """A function that an Accum or a Scan applies to the elements of a group.

    The state is whatever ``start`` and ``update`` return; ``finish`` turns it into a value and may
    be called more than once (Scan). Unless it says otherwise (``check``) its operands are tiles of
    one element type.

    Attributes:
        operands: how many it takes; None for any number.
        floats: they are floating-point numbers: integers have no exact result.

    Family:
        Functions of Accum and Scan.
    """

    duties: ClassVar[tuple[str, ...]] = (
        "infer",
        "flops or fixed_cycles",
        "start",
        "update",
        "finish",
    )

    operands: ClassVar[int | None] = None
    floats: ClassVar[bool] = False

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        """Return the types of the operands, which are those that ``name`` can take.

        Raises:
            ShapeError: another number, or other types.
        """
        count = self.operands or max(1, len(operands))
        return tile_types(name, operands, count, floats=self.floats)

    @property
    def fixed_cycles(self) -> Annotated[int, Bounds(0)] | None:
        """Cycles per element whatever its size; None where ``flops`` decides."""
        return None

    @property
    def keeps_placement(self) -> bool:
        """The result is where the inputs were (the flag ``in_memory``), not where Accum says."""
        return False

    @property
    def roundings(self) -> Annotated[int, Bounds(0)]:
        """How many roundings in a row a number goes through; 0 where data are only moved."""
        return 1

    def infer(self, group: Dim, *inputs: Operand) -> ValueType:
        """Return the type of the result for groups of ``group`` elements.

        Raises:
            ShapeError: the inputs do not fit.
        """
        raise NotImplementedError

    def flops(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the operations for one element, from rows and cols of tiles or tile types."""
        return 0  # of a function with fixed cycles: others say how many

    def operand_bytes(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the bytes of operands it holds on chip (the paper's equations)."""
        return 0

    def start(self, result: Operand, functional: bool) -> State:
        """Return the state before the first element."""
        raise NotImplementedError

    def start_bytes(self, result: Operand) -> int:
        """Return the bytes of the fresh accumulator, 0 where its size is decided by data."""
        return result.size_bytes if isinstance(result.size_bytes, int) else 0

    def growth_bytes(self, state: State, *inputs: Operand) -> int:  # noqa: ARG002 - a default
        """Return the bytes by which an update makes an accumulator larger than its start."""
        return 0

    def update(self, state: State, *inputs: Operand) -> State:
        """Return the state after one more element."""
        raise NotImplementedError

    def finish(self, state: State, result: Operand, functional: bool) -> Value:
        """Return the value for ``state``."""
        raise NotImplementedError

    def layout(
        self,
        layout: Layout,  # noqa: ARG002 - a default
        outer: tuple[Loop, ...],  # noqa: ARG002 - a default
        inner: tuple[Loop, ...],  # noqa: ARG002 - a default
    ) -> Layout | str:
        """Return the layout of the results for groups of tiles, or why there is none.

        Args:
            layout: of the tiles.
            outer: its loops over the groups.
            inner: its loops over the tiles of one group.
        """
        return f"{type(self).__name__} makes another tensor"

    def cycles(self, unit: ComputeUnit, *inputs: Operand) -> int:
        """Count the work on ``unit`` and return the cycles it takes there."""
        fixed = self.fixed_cycles
        return unit.compute(self.flops(*inputs)) if fixed is None else fixed

"""What a kernel is: what it reads and gives, in which layouts, and what comes between two of them.

What one kernel gives comes to another as it is, through a converter, or through memory.

Source: StreamTensor, arXiv 2509.13694v2, sections 3 (converters) and 4.2 (fusion, Algorithm 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fabric import Layout, Program, ShapeError, Stream
from operators.convert import Convert, matrix_of
from operators.kernels.tensors import Computed, Pulled, Source, Stored, View

Streams = Stream | tuple[Stream, ...]
"""A tensor as it comes: one stream in a layout, or as many as an opaque form has."""


@dataclass(frozen=True, eq=False)
class Operand:
    """What a kernel reads.

    Attributes:
        view: the tensor.
        layout: in which it is read, over the view's shape: loops along no dimension read again.
            None for an opaque form, which is read as it comes.
        resident: what is read again stays on chip; where not, and it comes from off-chip memory,
            it is loaded again. What a kernel gives is always kept.
        broadcasts: along which axes of a tile one row (0) or one column (1) does for many that are
            alike: the function repeats it.
        rearranges: the kernel is given tiles as they are in the source, and puts their elements
            where the view has them.
    """

    view: View
    layout: Layout | None
    resident: bool = True
    broadcasts: tuple[int, ...] = ()
    rearranges: bool = False

    def pulled(self) -> Pulled:
        """Return what is wanted of the source.

        Raises:
            ShapeError: no walk of it gives that.
        """
        view, source = self.view, self.view.source
        assert self.layout is not None
        pulled = view.pull(self.layout)
        if pulled is None:
            raise ShapeError(
                f"{source.name} {list(source.shape)} is read as {list(view.shape)} in "
                f"{self.layout}: expected a walk that tiles of the tensor can make"
            )
        return pulled


class Kernel(ABC):
    """One call on whole tensors, as a small graph of operators.

    Attributes:
        name: of its operators.
        operands: what it reads.
        results: what it gives.
    """

    family: ClassVar[str]
    """What reports call it."""

    name: str
    operands: tuple[Operand, ...]
    results: tuple[Source, ...]

    @abstractmethod
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        """Wire the operators in the program that is open.

        Args:
            inputs: as the operands say, ``[1, *layout.trips]`` each.

        Returns:
            For each result, ``[1, *layout.trips]`` of tiles, or its opaque form.
        """

    def tell(self, program: Program, given: Sequence[Streams]) -> None:  # noqa: B027 - most know nothing
        """Tell ``program`` what the kernel knows of what it has wired, and has ``given``.

        Sizes that known data give to symbols, and depths that channels have to have.
        """


@dataclass(frozen=True)
class Joint:
    """What an edge takes.

    Attributes:
        pulled: the layout in which the reader wants the source.
        convertible: a converter does it; else it has to go through off-chip memory.
    """

    pulled: Pulled
    convertible: bool


def joint_of(operand: Operand) -> Joint:
    """Return what it takes to read ``operand`` of the kernel that gives it.

    Raises:
        ShapeError: not even memory can give it so.
    """
    source = operand.view.source
    assert isinstance(source, Computed)
    pulled = operand.pulled()
    return Joint(pulled, _convertible(source.layout, pulled.layout))


def _convertible(given: Layout, wanted: Layout) -> bool:
    if given.shape != wanted.shape:
        return False
    try:
        Convert(wanted).buffer(given)
    except ShapeError:
        return False
    return True


def may_be_spilled(operand: Operand) -> bool:
    """Whether off-chip memory can give an operand as its kernel reads it."""
    source = operand.view.source
    if not isinstance(source, Computed):
        return isinstance(source, Stored)
    try:
        matrix_of(source.layout)
        matrix_of(joint_of(operand).pulled.layout)
    except ShapeError:
        return False
    return True

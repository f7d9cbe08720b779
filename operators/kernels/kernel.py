"""Kernels: their operands and results with layouts, and the edges between two kernels.

A result reaches another kernel unchanged, through a converter, or through off-chip memory.

Source: StreamTensor, arXiv 2509.13694v2, sections 3 (converters) and 4.2 (fusion, Algorithm 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fabric import Layout, Program, ShapeError, Stream
from operators.convert import Convert, is_matrix
from operators.kernels.tensors import Computed, Pulled, Source, Stored, View

Streams = Stream | tuple[Stream, ...]
"""A tensor on streams: one stream in a layout, or the streams of an opaque form."""


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor that a kernel reads.

    Attributes:
        layout: the reading order, over the view's shape; a loop along no dimension reads again.
            None for an opaque form, which is read as it is.
        resident: tiles that are read again stay on chip; otherwise a stored tensor is loaded again.
            Results of kernels are always kept.
        broadcasts: axes of a tile along which a single row (0) or column (1) replaces equal ones;
            the function repeats it.
        rearranges: the kernel receives tiles in the source's element order, and moves their
            elements to the view's order itself.
    """

    view: View
    layout: Layout | None
    resident: bool = True
    broadcasts: tuple[int, ...] = ()
    rearranges: bool = False

    def pulled(self) -> Pulled:
        """Return the layout in which the source is read."""
        view, source = self.view, self.view.source
        assert self.layout is not None
        pulled = view.pull(self.layout)
        if pulled is None:
            raise ShapeError(
                f"{source.name} {list(source.shape)} is read as {list(view.shape)} in "
                f"{self.layout}: expected an order in which its tiles can be read"
            )
        return pulled


class Kernel(ABC):
    """One call on whole tensors, as a small graph of operators."""

    family: ClassVar[str]
    """The kind of kernel in reports."""

    def __init__(self, name: str, operands: Sequence[Operand], *results: Source) -> None:
        self.name = name
        self.operands = tuple(operands)
        self.results = results

    @abstractmethod
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        """Wire the operators in the open program.

        Args:
            inputs: for each operand, ``[1, *layout.trips]`` of tiles, or its opaque form.

        Returns:
            For each result, ``[1, *layout.trips]`` of tiles, or its opaque form.
        """

    def configure(self, program: Program, outputs: Sequence[Streams]) -> None:  # noqa: B027 - a default
        """Set sizes of symbols and depths of channels; ``outputs`` are the streams of ``wire``."""


@dataclass(frozen=True)
class Joint:
    """An edge between two kernels.

    Attributes:
        pulled: the layout in which the reader wants the source.
        convertible: a converter is enough; otherwise the edge goes through off-chip memory.
    """

    pulled: Pulled
    convertible: bool


def joint_of(operand: Operand) -> Joint:
    """Return the edge between ``operand`` and the kernel that computes it."""
    source = operand.view.source
    assert isinstance(source, Computed)
    pulled = operand.pulled()
    try:
        Convert(pulled.layout).buffer(source.layout)
    except ShapeError:
        return Joint(pulled, convertible=False)
    return Joint(pulled, convertible=True)


def may_be_spilled(operand: Operand) -> bool:
    """Whether off-chip memory can give an operand as its kernel reads it."""
    source = operand.view.source
    if not isinstance(source, Computed):
        return isinstance(source, Stored)
    return is_matrix(source.layout) and is_matrix(operand.pulled().layout)

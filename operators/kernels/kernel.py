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
        layout: the reading order, over the view's shape; a loop along no dimension reads tiles
            again. None for an opaque form, which is read unchanged.
        resident: whether tiles that are read again stay on chip. Otherwise a stored tensor is
            loaded again; results of kernels are always kept.
        broadcasts: axes of a tile along which a single row (0) or column (1) replaces equal ones;
            the function repeats it.
        rearranges: the kernel receives tiles with the source's order of elements, and moves the
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


def is_convertible(view: View, wanted: Layout) -> bool:
    """Whether a converter brings a kernel's result to ``wanted``; otherwise it needs memory."""
    source = view.source
    assert isinstance(source, Computed)
    try:
        Convert(wanted).buffer(source.layout)
    except ShapeError:
        return False
    return True


def may_be_spilled(operand: Operand) -> bool:
    """Whether an operand can be read from off-chip memory in the order of its kernel."""
    source = operand.view.source
    if not isinstance(source, Computed):
        return isinstance(source, Stored)
    return is_matrix(source.layout) and is_matrix(operand.pulled().layout)

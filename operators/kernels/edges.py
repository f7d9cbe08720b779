"""How what one kernel gives comes to another: as it is, through a converter, or through memory.

Source: StreamTensor, arXiv 2509.13694v2, sections 3 (converters) and 4.2 (fusion, Algorithm 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric import Layout, ShapeError
from operators.convert import Convert
from operators.kernels.kernel import Operand
from operators.kernels.tensors import Computed, Pulled, Stored
from operators.through_memory import matrix_of

__all__ = ["Joint", "joint_of", "may_be_spilled"]


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

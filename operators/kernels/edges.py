"""How what one kernel gives comes to another: as it is, through a converter, or through memory.

Source: StreamTensor, arXiv 2509.13694v2, sections 3 (converters) and 4.2 (fusion, Algorithm 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from fabric import ShapeError, convert_bytes
from operators.kernels.kernel import Operand
from operators.kernels.tensors import Computed, Pulled

__all__ = ["Joint", "joint_of"]


@dataclass(frozen=True)
class Joint:
    """What an edge takes.

    Attributes:
        pulled: the layout in which the reader wants the source.
        buffer_bytes: of its converter; 0 where both layouts are one, None where no converter does
            it and it has to go through off-chip memory.
        whole_bytes: of the tensor that passes.
    """

    pulled: Pulled
    buffer_bytes: int | None
    whole_bytes: int


def joint_of(operand: Operand) -> Joint:
    """Return what it takes to read ``operand`` of the kernel that gives it.

    Raises:
        ShapeError: not even memory can give it so.
    """
    source, layout = operand.view.source, operand.layout
    assert isinstance(source, Computed)
    assert layout is not None
    pulled = operand.view.pull(layout)
    if pulled is None:
        raise ShapeError(
            f"{source.name} {list(source.shape)} is read as {list(operand.view.shape)} in "
            f"{layout}: expected a walk that tiles of the tensor can make"
        )
    itemsize = source.dtype.itemsize
    whole = source.layout.count * source.layout.rows * source.layout.cols * itemsize
    if pulled.layout.shape != source.shape:
        return Joint(pulled, None, whole)
    if pulled.layout.same_order(source.layout):
        return Joint(pulled, 0, whole)
    try:
        buffer = convert_bytes(source.layout, pulled.layout, itemsize)
    except ShapeError:
        return Joint(pulled, None, whole)
    return Joint(pulled, buffer.bytes, whole)

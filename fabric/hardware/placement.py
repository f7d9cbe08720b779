"""How the tensors of a program are laid out in off-chip memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Bounds
from fabric.arguments.sections import Section

__all__ = ["PlacementDescription"]

Bytes: TypeAlias = Annotated[int, Bounds(0, 2**30)]


@dataclass(frozen=True, kw_only=True)
class PlacementDescription(Section):
    """Where tensors lie in memory, and the order of their bytes.

    Attributes:
        tiles: ``row-major``: the rows of a tile are as far apart as those of its tensor;
            ``contiguous``: each tile's rows are one behind the other, and the next tile behind
            them, where all operators on a tensor cut it into the same tiles.
        alignment_bytes: tensors begin at multiples of so many.
        stagger_bytes: the tensor with i others before it begins i times so many further.
        row_padding_bytes: left free behind each row of a row-major tensor whose rows have a power
            of two of bytes, more than these, where all operators read it with rows of that length.
    """

    tiles: Literal["row-major", "contiguous"] = "row-major"
    alignment_bytes: Annotated[int, Bounds(1, 2**30)] = 4096
    stagger_bytes: Bytes = 0
    row_padding_bytes: Bytes = 0

    @override
    def _stated(self) -> dict[str, object]:
        """Return its keys; nothing where tensors are as they are without the section."""
        return {} if self == PlacementDescription() else super()._stated()

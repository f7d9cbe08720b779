"""Shapes that a program states where it knows more than its operators can tell.

The paper's listing replaces the dimension that Reassemble introduces by 1 (figure 7); here that is
``stream.assume(...)``, and a run checks it.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from typing_extensions import override

from fabric.dims import Dim, dim_text, same
from fabric.errors import ProgramError, ShapeError
from fabric.place import Place
from fabric.stream import Stream
from fabric.stream_type import StreamType, shape_text

__all__ = ["Assumed", "Claim"]


class Claim(NamedTuple):
    """One dimension with the size the program says it has.

    Attributes:
        stream: its name.
        dimension: counted from the innermost.
        found: what the operators can tell.
        assumed: what the program says.
        place: where it says so.
    """

    stream: str
    dimension: int
    found: Dim
    assumed: Dim
    place: Place

    def refuted_by(self, size: int, expected: int, group: int | None = None) -> ProgramError:
        """Return the error for a size that is not the ``expected`` one.

        Args:
            size: what the run had.
            expected: the value of ``assumed`` in this run.
            group: which of the dimension's groups it was, from 1; None for the only one.
        """
        where = "" if group is None else f" in group {group:,}"
        said = dim_text(self.assumed)
        value = said if said == str(expected) else f"{said}, here {expected:,}"
        return ProgramError(
            f"{self.stream}: dimension {self.dimension} ({dim_text(self.found)}) is "
            f"{size:,}{where}: expected {value}, as the program assumes",
            file=self.place.file,
            line=self.place.line,
        )


class Assumed(Stream):
    """A stream under a shape that the program states; the operators in front of it stay the same.

    Attributes:
        place: where the program says so.
        claims: dimensions that only the program knows; none where it adds nothing.
        used: an operator reads the stream under this shape.
    """

    def __init__(self, stream: Stream, shape: tuple[Dim, ...], place: Place) -> None:
        """State ``shape`` of ``stream``.

        Raises:
            ProgramError: the stream is a feedback, whose declaration can say so.
            ShapeError: the number of dimensions differs, or one is known to have another size.
        """
        super().__init__(stream.node, stream.port, StreamType(shape, stream.value))
        if stream.node is None:
            raise ProgramError(
                f"assume is told the shape of {stream}: expected the shape in the Feedback itself",
                file=place.file,
                line=place.line,
            )
        self.place: Final = place
        self.used = False
        self._stream: Final = stream
        known = tuple(same(a, b) for a, b in zip(stream.shape, shape, strict=False))
        if len(shape) != len(stream.shape) or False in known:
            raise ShapeError(
                f"assume says that {stream} has shape {shape_text(shape)}: expected "
                f"{len(stream.shape)} dimensions that can be equal",
                file=place.file,
                line=place.line,
            )
        new = tuple(
            Claim(stream.name, len(shape) - 1 - axis, found, assumed, place)
            for axis, (found, assumed) in enumerate(zip(stream.shape, shape, strict=True))
            if known[axis] is None
        )
        self.claims: Final = (*getattr(stream, "claims", ()), *new)
        self.says_nothing: Final = not new
        stream.node.assumed.append(self)

    @override
    def resolve(self) -> Stream:
        return self._stream.resolve()

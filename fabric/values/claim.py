"""What a program says of the shape of a stream, beyond what its operators can tell."""

from __future__ import annotations

from typing import NamedTuple

from fabric.telling.errors import ProgramError
from fabric.telling.place import Place
from fabric.values.dims import Dim, dim_text

__all__ = ["Claim"]


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

"""Places in the user's program: the file and line an operator was wired at."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

__all__ = ["Place", "calling_place"]

_OWN = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name) + os.sep
    for name in ("fabric", "operators")
)


class Place(NamedTuple):
    """A line of the user's program.

    Attributes:
        file: as the program was named on the command line, else as Python knows it.
        line: starting at 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        """``file:line``, as editors and terminals link it."""
        return f"{self.file}:{self.line}"


def calling_place() -> Place:
    """Return the innermost place on the stack outside the fabric and its operators."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)

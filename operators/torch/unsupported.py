"""Calls that cannot be imported, and what each would need."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Unsupported"]


@dataclass(frozen=True)
class Unsupported:
    """A call that cannot be imported.

    Attributes:
        call: such as ``aten.sort.default``.
        module: path of the module that makes it.
        file, line: in the user's model.
        needed: what would make it possible.
    """

    call: str
    module: str
    file: str | None
    line: int | None
    needed: str

    def __str__(self) -> str:
        """One sentence, without the place."""
        where = f" in module {self.module}" if self.module else ""
        return f"from_torch cannot import {self.call}{where}: {self.needed}"

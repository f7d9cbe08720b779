"""Calls that cannot be imported, and what each would need."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Unsupported"]


@dataclass(frozen=True)
class Unsupported:
    """A call that cannot be imported.

    Attributes:
        written: what the user's line calls, such as ``index_add``; empty where PyTorch does not
            say.
        call: what becomes of it in the trace, such as ``aten.index_put.default``.
        module: path of the module that makes it.
        file, line: in the user's model.
        needed: what would make it possible.
    """

    written: str
    call: str
    module: str
    file: str | None
    line: int | None
    needed: str

    def __str__(self) -> str:
        """One sentence, without the place."""
        where = f" in module {self.module}" if self.module else ""
        called = f"{self.written} ({self.call})" if self.written else self.call
        return f"from_torch cannot import {called}{where}: {self.needed}"

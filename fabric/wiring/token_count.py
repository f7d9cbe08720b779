"""How many tokens of a language model a run is about, as its program says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from typing_extensions import override

__all__ = ["TokenCount", "TokenPhase"]

TokenPhase: TypeAlias = Literal["decode", "prefill"]


@dataclass(frozen=True)
class TokenCount:
    """Tokens of a run.

    Attributes:
        count: of all requests together.
        phase: ``decode``: the run makes them, one for each request; ``prefill``: it reads them, and
            a request has its first token when the run ends.
    """

    count: int
    phase: TokenPhase

    @override
    def __str__(self) -> str:
        return f"{self.count:,} of {self.phase}"

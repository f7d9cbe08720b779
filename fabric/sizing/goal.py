"""What the depths have to keep."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from typing_extensions import override

from fabric.retiming.retimer import NO_LIMIT
from fabric.telling.errors import ConfigurationError

__all__ = ["Goal"]

_EXPECTED = "deadlock-free, same-cycles, slowdown=X with X at least 1, or cycles=N"


@dataclass(frozen=True)
class Goal:
    """What is to be kept: that the run ends, or how soon.

    Attributes:
        kind: which.
        bound: of ``slowdown`` how many times the unbounded run's cycles, of ``cycles`` how many.
    """

    kind: Literal["deadlock-free", "same-cycles", "slowdown", "cycles"]
    bound: Fraction = Fraction(1)

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a goal as it is written on the command line.

        Raises:
            ConfigurationError: it is none.
        """
        if text == "deadlock-free":
            return cls("deadlock-free")
        if text == "same-cycles":
            return cls("same-cycles")
        kind, _, number = text.partition("=")
        try:
            bound = Fraction(number)
        except (ValueError, ZeroDivisionError):
            bound = Fraction(0)
        if kind == "slowdown" and bound >= 1:
            return cls("slowdown", bound)
        if kind == "cycles" and bound >= 1 and bound.denominator == 1:
            return cls("cycles", bound)
        raise ConfigurationError(f"--goal {text}: expected {_EXPECTED}")

    def limit_cycles(self, unbounded_cycles: int) -> int:
        """Return how long a run may take whose channels, unbounded, let it take so long."""
        if self.kind == "deadlock-free":
            return NO_LIMIT
        if self.kind == "cycles":
            return int(self.bound)
        return int(unbounded_cycles * self.bound)

    @override
    def __str__(self) -> str:
        if self.kind in ("deadlock-free", "same-cycles"):
            return self.kind
        number = self.bound.numerator if self.bound.denominator == 1 else float(self.bound)
        return f"{self.kind}={number}"

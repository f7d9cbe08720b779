"""What claims and pictures see of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fabric.study.outcome import Outcome

__all__ = ["Findings"]


class Findings(Protocol):
    """The points of a study and their outcomes."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Those that were dealt with, in the order of the space."""

    @property
    def front(self) -> Sequence[int]:
        """Indices of the points that nothing dominates."""

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes whose settings, with what is fixed, have these values."""

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None where it did not complete.

        Raises:
            ConfigurationError: there is no such point, or there are several.
        """

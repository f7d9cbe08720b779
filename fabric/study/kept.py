"""The protocol of stores of a study's outcomes, and the store that keeps nothing."""

from __future__ import annotations

from typing import Protocol

from fabric.study.outcome import Outcome, Point

__all__ = ["Kept", "NotKept"]


class Kept(Protocol):
    """Where outcomes stay."""

    def known(self) -> list[Outcome]:
        """Return those of earlier sessions."""

    def news(self) -> list[Outcome]:
        """Return those that other processes have kept since this was last asked."""

    def claim(self, point: Point, *, insist: bool) -> bool:
        """Say that this process works on a point; False: another one does, or did.

        Args:
            point: which.
            insist: work on it nevertheless.
        """

    def keep(self, outcome: Outcome) -> None:
        """Keep one, at once."""


class NotKept:
    """Nothing stays."""

    def known(self) -> list[Outcome]:
        """Return nothing."""
        return []

    def news(self) -> list[Outcome]:
        """Return nothing."""
        return []

    def claim(self, point: Point, *, insist: bool) -> bool:  # noqa: ARG002 - see Kept
        """Agree: nobody else knows of it."""
        return True

    def keep(self, outcome: Outcome) -> None:
        """Keep nothing."""

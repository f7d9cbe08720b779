"""What a remedy changes in a stuck program: capacity, depths, and what a Feedback begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.wiring.stream import Feedback

__all__ = ["Change"]


@dataclass(frozen=True)
class Change:
    """What is done to a program.

    Attributes:
        capacity_bytes: of the on-chip memory; None for no limit.
        depths: of single channels, by option.
        initial: sub-tensors in front of feedbacks.
    """

    capacity_bytes: int | None
    depths: Mapping[str, int] = field(default_factory=dict)
    initial: Mapping[Feedback, int] = field(default_factory=dict)

    def deeper(self, depths: Mapping[str, int]) -> Change:
        """Return the same with other depths of some channels."""
        return replace(self, depths={**self.depths, **depths})

    def with_depth(self, option: str, depth: int) -> Change:
        """Return the same with another depth of one channel."""
        return self.deeper({option: depth})

    def begun(self, feedback: Feedback, count: int) -> Change:
        """Return the same with ``count`` sub-tensors in front of ``feedback``."""
        return replace(self, initial={**self.initial, feedback: count})

    def roomy(self, capacity_bytes: int | None) -> Change:
        """Return the same with another on-chip memory."""
        return replace(self, capacity_bytes=capacity_bytes)

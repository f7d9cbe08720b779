"""How long a channel is, in cycles each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from fabric.arguments.checks import Bounds
from fabric.arguments.described import Described
from fabric.telling.errors import ConfigurationError, FabricError

__all__ = ["ONE_CYCLE", "Hop"]


@dataclass(frozen=True)
class Hop(Described):
    """The latency of a channel; within a cycle no unit sees what another does, so 1 at least.

    Attributes:
        forward_cycles: from the sending of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which its credit is usable.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    forward_cycles: Annotated[int, Bounds(1)] = 1
    backward_cycles: Annotated[int, Bounds(1)] = 1


ONE_CYCLE: Final = Hop()
"""Of every channel that nobody says otherwise of."""

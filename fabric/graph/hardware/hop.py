"""The latency of a channel by itself: cycles forward and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described
from fabric.messages.telling.errors import ConfigurationError, FabricError

__all__ = ["ONE_CYCLE", "Hop"]

_TEXT: Final = re.compile(r"(?P<forward>[0-9]{1,9})\+(?P<backward>[0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Hop(Described):
    """The latency of a channel, in cycles forward and back, each at least 1.

    Attributes:
        forward_cycles: from the sending of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which the producer can use the credit.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    forward_cycles: Annotated[int, Bounds(1)] = 1
    backward_cycles: Annotated[int, Bounds(1)] = 1

    @classmethod
    def parse(cls, text: str) -> Hop:
        """Read a hop as the command line has it: ``3+4`` is 3 cycles forward and 4 back.

        Raises:
            ConfigurationError: it is no such text, or a hop takes no time.
        """
        found = _TEXT.fullmatch(text)
        if found is None or not (int(found["forward"]) and int(found["backward"])):
            raise ConfigurationError(
                f"{text!r}: expected cycles forward and back, each at least 1, as in 3+4"
            )
        return cls(int(found["forward"]), int(found["backward"]))

    @override
    def __str__(self) -> str:
        """Return what ``parse`` reads."""
        return f"{self.forward_cycles}+{self.backward_cycles}"


ONE_CYCLE: Final = Hop()
"""Of every channel that nobody says otherwise of."""

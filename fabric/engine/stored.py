"""What stores have written in one run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fabric.engine.unit import Unit

__all__ = ["Stored"]


class Stored(dict[str, Any]):
    """Arrays by the name of the output.

    Attributes:
        scratch: arrays that are no outputs, but read again in the run, by what they are of.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scratch: Final[dict[object, Any]] = {}
        self._last: defaultdict[object, dict[int, tuple[int, int]]] = defaultdict(dict)

    def stays(self, output: object, place: int, unit: Unit) -> bool:
        """Whether what ``unit`` writes to ``place`` at its clock is the latest so far.

        Units that share an output run in any order of the host; what they leave is that of their
        clocks. Of two in one cycle the higher node comes later, as the memory serves them.
        """
        last, now = self._last[output], (unit.now, unit.index)
        if now < last.get(place, now):
            return False
        last[place] = now
        return True

"""Where a run is to be held, as it is written: ``CYCLE`` or ``UNIT:ELEMENT``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.runs.stepped import SteppedRun
    from fabric.state.run_state import RunState

__all__ = ["Break"]


class Break(NamedTuple):
    """A cycle, or an element of a unit.

    Attributes:
        unit: its name; None where it is a cycle.
        number: the cycle, or how many values the unit takes or sends.
    """

    unit: str | None
    number: int

    @staticmethod
    def parse(text: str) -> Break:
        """Read ``text``; cycles may have commas, as they are printed.

        Raises:
            ConfigurationError: it is neither.
        """
        unit, colon, last = text.strip().rpartition(":")
        digits = last.replace(",", "")
        # Python reads no number of thousands of digits.
        readable = digits.isdecimal() and len(digits) <= 18
        if not readable or (colon and not (unit and int(digits))):
            raise ConfigurationError(
                f"{text.strip()!r}: expected CYCLE or UNIT:ELEMENT, such as 1000 or matmul_1:3"
            )
        return Break(unit if colon else None, int(digits))

    def go(self, run: SteppedRun) -> str:
        """Let ``run`` go on to it, and return what happens there; nothing of a cycle.

        Raises:
            FabricError: see ``SteppedRun.until``.
        """
        if self.unit is None:
            run.until(cycle=self.number)
            return ""
        run.until(unit=self.unit, element=self.number)
        unit, number = visible(self.unit), f"{self.number:,}"
        channel = _counted(run.state, self.unit)
        if channel is None:
            return f"{unit} sends element {number}"
        producer, _, key = visible(channel).partition(" -> ")
        unit, _, port = key.rpartition(".")
        return f"{unit} takes element {number} from its input {port}, {producer}"


def _counted(state: RunState, unit: str) -> str | None:
    """Return the channel whose elements are counted; None where those are that ``unit`` sends."""
    found = next((each for each in state.units if each.name == unit), None)
    if found is None:
        return next(each.name for each in state.channels if each.name.endswith(f" -> {unit}"))
    read = [each.name for each in state.channels if each.consumer == found.number]
    return min(read, key=lambda name: int(name.rpartition(".")[2]), default=None)

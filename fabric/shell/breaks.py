"""Where a run is to be held, as it is written: ``CYCLE`` or ``UNIT:ELEMENT``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.errors import ConfigurationError

if TYPE_CHECKING:
    from fabric.runs.stepped import SteppedRun

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

    def go(self, run: SteppedRun) -> None:
        """Let ``run`` go on to it.

        Raises:
            FabricError: see ``SteppedRun.until``.
        """
        if self.unit is None:
            run.until(cycle=self.number)
        else:
            run.until(unit=self.unit, element=self.number)

"""Numbers as the paper prints them: ``1.65``, ``62%``, ``<1%``, ``about 5%``, ``1.14-1.26``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Printed"]

_FORM: Final = re.compile(
    r"(?P<bound><|about |\+)?(?P<first>\d+(\.\d+)?)(-(?P<last>\d+(\.\d+)?))?(?P<unit>[x%]?)"
)


@dataclass(frozen=True)
class Printed:
    """A printed number, or a range of two.

    Attributes:
        text: as it is printed.
        ends: the number, or the first and the last of the range.
        digits: behind the point.
        unit: ``x``, ``%`` or nothing.
        below: whether everything below it is claimed.
    """

    text: str
    ends: tuple[float, ...]
    digits: int
    unit: str
    below: bool

    @staticmethod
    def parse(text: str) -> Printed:
        """Read a printed number.

        Raises:
            ValueError: it is none.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not printed as a number")
        ends = [each for each in (found["first"], found["last"]) if each]
        digits = len(ends[0].partition(".")[2])
        below = found["bound"] == "<"
        return Printed(text, tuple(map(float, ends)), digits, found["unit"], below)

    def holds(self, values: Sequence[float]) -> bool:
        """Say whether values, whose least and largest count, are what is printed.

        They are within one unit of the last digit: papers round, and truncate.
        """
        ends = (min(values), max(values)) if len(self.ends) > 1 else (max(values),)
        if self.below:
            return ends[-1] < self.ends[-1]
        unit = 10.0**-self.digits
        return all(abs(a - b) < unit for a, b in zip(ends, self.ends, strict=True))

    def off(self, value: float) -> float:
        """Return by which part of it a value differs; of what is in per cent, from the whole."""
        if self.unit == "%":
            return (value - self.ends[-1]) / (100 + self.ends[-1])
        return value / self.ends[-1] - 1

    def told(self, values: Sequence[float]) -> str:
        """Return values in the same form, with two more digits."""
        ends = (min(values), max(values)) if len(self.ends) > 1 else (max(values),)
        told = " to ".join(f"{each:.{self.digits + 2}f}" for each in ends)
        return told + {"%": " %"}.get(self.unit, self.unit)

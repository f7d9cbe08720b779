"""Numbers as the paper prints them: ``1.65``, ``62%``, ``<1%``, ``about 5%``, ``1.14-1.26``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FORM: Final = re.compile(
    r"(?P<bound><|about |\+)?(?P<first>\d+(\.\d+)?)(-(?P<last>\d+(\.\d+)?))?(?P<unit>[x%]?)"
)

_ROUNDING: Final = 1e-9
"""The tolerance for binary rounding, as a fraction of a unit of the last printed digit."""


@dataclass(frozen=True)
class Printed:
    """A printed number, or a range of two.

    It represents all numbers that round or truncate to it. With ``about`` it represents all numbers
    within one unit of the last digit.

    Attributes:
        ends: the number, or both ends of the range.
        unit: ``x``, ``%`` or empty.
        below: whether it is printed with "<" and represents all smaller numbers.
        about: whether it is printed with "about".
    """

    text: str
    ends: tuple[float, ...]
    digits: int
    unit: str
    below: bool
    about: bool

    @staticmethod
    def parse(text: str) -> Printed:
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not printed as a number")
        ends = tuple(float(end) for end in (match["first"], match["last"]) if end)
        digits = len(match["first"].partition(".")[2])
        bound = match["bound"]
        return Printed(text, ends, digits, match["unit"], bound == "<", bound == "about ")

    def holds(self, values: Sequence[float]) -> bool:
        return self.off(values) == 0

    def off(self, values: Sequence[float]) -> float:
        """Return the relative error of values to the printed number; 0 if they match it.

        Percentages are increases over 100, so the error of 8 % to 5 % is 3 / 105.
        """
        ends = zip(self._ends_of(values), self.ends, strict=True)
        return max(self._beyond(value, end) / self._whole(end) for value, end in ends)

    def _ends_of(self, values: Sequence[float]) -> tuple[float, ...]:
        return (min(values), max(values)) if len(self.ends) > 1 else (max(values),)

    def _beyond(self, value: float, end: float) -> float:
        """Return the distance of a value to the numbers that a printed number represents."""
        unit = 10.0**-self.digits
        below = math.inf if self.below else unit if self.about else unit / 2
        first, last = end - below, end + (0 if self.below else unit)
        rounding = _ROUNDING * unit
        if first - rounding <= value < last - rounding:
            return 0
        return max(first - value, value - last, rounding)

    def _whole(self, end: float) -> float:
        return 100 + end if self.unit == "%" else end

    def told(self, values: Sequence[float]) -> str:
        """Return values in the same form, with two more digits."""
        text = " to ".join(f"{each:.{self.digits + 2}f}" for each in self._ends_of(values))
        return text + {"%": " %"}.get(self.unit, self.unit)

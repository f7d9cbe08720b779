from __future__ import annotations

from itertools import combinations
from typing import Final

from fabric.messages.causes import STUCK, BusUse, Cause


def _linear(colour: str) -> list[float]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _contrast_with_white(colour: str) -> float:
    # Web Content Accessibility Guidelines 2.2
    red, green, blue = _linear(colour)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def _lab(colour: str) -> tuple[float, float, float]:
    # CIE L*a*b*, whose distances match what people perceive
    red, green, blue = _linear(colour)
    across = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in across)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _assert_distinct(colours: dict[str, str]) -> None:
    for (one, first), (other, second) in combinations(colours.items(), 2):
        pairs = zip(_lab(first), _lab(second), strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 25, (one, other)


CAUSE_COLOURS: Final = {f"cause {cause}": cause.colour for cause in Cause} | {"stuck": STUCK}


def test_colours_of_causes_are_distinct() -> None:
    _assert_distinct(CAUSE_COLOURS)


def test_colours_of_bus_uses_differ_from_each_other_and_from_causes() -> None:
    uses = {f"use {use}": use.colour for use in BusUse if use is not BusUse.IDLE}
    _assert_distinct(uses | CAUSE_COLOURS)
    assert BusUse.IDLE.colour == Cause.IDLE.colour


def test_all_colours_but_idle_stand_out_from_a_white_page() -> None:
    assert [each for each in Cause if _contrast_with_white(each.colour) < 3] == [Cause.IDLE]
    assert [each for each in BusUse if _contrast_with_white(each.colour) < 3] == [BusUse.IDLE]

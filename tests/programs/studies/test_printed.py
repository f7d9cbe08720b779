from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.printed import Printed


@pytest.mark.parametrize(
    ("text", "within", "without"),
    [
        ("1.65", [[1.6536], [1.645], [1.6599]], [[1.67], [1.66], [1.6449]]),
        ("1.79", [[1.7995]], [[1.8001], [1.7849]]),
        ("62%", [[62.42], [61.5]], [[63.0], [61.4]]),
        ("69%", [[68.5]], [[68.416]]),
        ("+0.26%", [[0.2599]], [[-0.26], [0.35]]),
        ("<1%", [[0.61], [-3.0]], [[1.0], [1.2]]),
        ("5%", [[5.7353]], [[4.4]]),
        ("about 5%", [[5.7353], [4.4]], [[6.33], [3.9]]),
        ("1.45x", [[1.4533]], [[1.4433]]),
        ("1.14-1.26", [[1.145, 1.2, 1.2555]], [[1.145, 1.2], [1.1, 1.26], [1.2, 1.28, 1.145]]),
    ],
)
def test_printed_number_holds_what_rounds_to_it(
    text: str, within: list[list[float]], without: list[list[float]]
) -> None:
    printed = Printed.parse(text)

    assert [] == [values for values in within if not printed.holds(values)]
    assert [] == [values for values in without if printed.holds(values)]


@given(st.decimals(min_value="0.01", max_value="99", places=4))
def test_rounded_and_truncated_numbers_hold(exact: object) -> None:
    value = float(str(exact))
    rounded, truncated = f"{value:.2f}", str(exact)[:-2]

    assert Printed.parse(rounded).holds([value])
    assert Printed.parse(truncated).holds([value])


@pytest.mark.parametrize(
    ("text", "value", "off"),
    [
        ("1.65", 1.70, 0.04 / 1.65),
        ("1.65", 1.60, 0.045 / 1.65),
        ("about 5%", 6.33, 0.33 / 105),
        ("<1%", 2.01, 1.01 / 101),
        ("+0.26%", -0.23, 0.485 / 100.26),
    ],
)
def test_off_is_the_relative_distance(text: str, value: float, off: float) -> None:
    assert off == pytest.approx(Printed.parse(text).off([value]))


@pytest.mark.parametrize("text", ["", "fast", "1.2.3", "24.5 h (A.2) vs about 7 h (A.6)"])
def test_text_without_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not printed as a number"):
        Printed.parse(text)

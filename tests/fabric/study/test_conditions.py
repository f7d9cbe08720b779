"""Conditions on metrics: read, kept by runs, broken by what is known before a run."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Outcome, Study, grid
from fabric.explore.study.outcome import METRICS, Condition

SIGNS = st.sampled_from(["<=", ">=", "<", ">"])


def completed(cycles: int) -> Outcome:
    """Return a run of so many cycles."""
    return Outcome(index=0, setting={}, status="completed", numbers={"cycles": cycles})


@given(sign=SIGNS, value=st.integers(-5, 5), cycles=st.integers(-5, 5))
def test_holds(sign: str, value: int, cycles: int) -> None:
    """A condition is what Python says of the two numbers."""
    condition = Condition.parse(f"cycles {sign} {value}")
    assert condition.holds(completed(cycles)) == eval(f"{cycles} {sign} {value}")
    assert Condition.parse(str(condition)) == condition


@given(
    sign=SIGNS,
    value=st.integers(-5, 5),
    bound=st.integers(-5, 5),
    more=st.integers(0, 5),
    exact=st.booleans(),
)
def test_broken(sign: str, value: int, bound: int, more: int, exact: bool) -> None:
    """What is broken by a bound is broken by whatever run has that bound.

    What is at least so much may be more than any number, and is more than a number that it exceeds.
    """
    condition = Condition.parse(f"cycles{sign}{value}")
    cycles = bound if exact else bound + more
    if condition.broken_by({"cycles": bound}, ("cycles",) if exact else ()):
        assert not condition.holds(completed(cycles))
    elif exact or sign in ("<", "<="):
        assert condition.holds(completed(bound))


def test_unknown() -> None:
    """Nothing is broken by what is not known, and nothing holds of a run without the number."""
    condition = Condition.parse("flops < 3")
    assert not condition.broken_by({}, ())
    assert not condition.holds(completed(1))
    assert not condition.holds(Outcome(index=0, setting={}, status="deadlock"))


@pytest.mark.parametrize(
    "text",
    ["", "cycles", "cycles < ", "cycles < nan", "cycles = 3", "< 3", "cycles < x", "cycles < 1,5"],
)
def test_refused(text: str) -> None:
    """What is no condition is told with what one is."""
    with pytest.raises(ConfigurationError, match="expected METRIC <= NUMBER, or with <, >= or >"):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("text", "metric", "sign", "value"),
    [
        ("cycles<=1_000", "cycles", "<=", 1000.0), (" cycles >= -2.5 ", "cycles", ">=", -2.5),
        ("extra.x > 1e3", "extra.x", ">", 1e3), ("worst:cycles < inf", "worst:cycles", "<", 1e999),
    ],
)  # fmt: skip
def test_read(text: str, metric: str, sign: str, value: float) -> None:
    """Spaces do not matter, and neither do underscores in the number."""
    assert Condition(metric, sign, value) == Condition.parse(text)


def test_metrics() -> None:
    """They are numbers of the run, none of the machine it ran on."""
    assert METRICS[0] == "cycles"
    assert "wall_seconds" not in METRICS
    with pytest.raises(ConfigurationError, match="there is no metric wall_seconds"):
        Condition.parse("wall_seconds < 3")
    assert Condition.parse("extra.flops_artifact <= 1e9").value == 1e9


@pytest.mark.parametrize("first", ["<", "<=", ">", ">="])
def test_contradictions(first: str) -> None:
    """Conditions on one metric that no number keeps are refused, whichever stands first."""
    numbers = [each / 2 for each in range(-6, 7)]
    path, space, one = Path("x.py"), grid(a=(1,)), f"cycles {first} 0"
    for second, value in itertools.product(("<", "<=", ">", ">="), (-1, 0, 1)):
        other = f"cycles {second} {value}"
        Study(program=path, space=space, where=(one, f"flops {second} {value}"))
        if any(eval(f"{x} {first} 0 and {x} {second} {value}") for x in numbers):
            Study(program=path, space=space, where=(one, "flops > 9", other))
            continue
        above, below = (one, other) if first[0] == ">" else (other, one)
        with pytest.raises(ConfigurationError) as raised:
            Study(program=path, space=space, where=(one, "flops > 9", other))
        assert raised.value.message == (
            f"conditions {above} and {below} contradict each other: no point can keep both"
        )

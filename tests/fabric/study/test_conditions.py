from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Outcome, Study, grid
from fabric.explore.study.outcome import Condition

SIGNS = st.sampled_from(["<=", ">=", "<", ">"])


def completed(cycles: int) -> Outcome:
    return Outcome(index=0, setting={}, status="completed", numbers={"cycles": cycles})


@given(sign=SIGNS, value=st.integers(-5, 5), cycles=st.integers(-5, 5))
def test_condition_holds_as_in_python(sign: str, value: int, cycles: int) -> None:
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
def test_condition_broken_by_a_bound_is_broken_by_the_run(
    sign: str, value: int, bound: int, more: int, exact: bool
) -> None:
    # A lower bound above the limit breaks the condition; a lower bound below it decides nothing.
    condition = Condition.parse(f"cycles{sign}{value}")
    cycles = bound if exact else bound + more
    if condition.broken_by({"cycles": bound}, ("cycles",) if exact else ()):
        assert not condition.holds(completed(cycles))
    elif exact or sign in ("<", "<="):
        assert condition.holds(completed(bound))


@pytest.mark.parametrize("first", ["<", "<=", ">", ">="])
def test_contradicting_conditions_are_refused(first: str) -> None:
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
            f"Study: conditions {above} and {below} contradict each other: expected conditions "
            "that a point can meet together"
        )

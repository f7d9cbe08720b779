from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.explore.sizing.result import Answer, settled
from fabric.graph.loading.program_file import load_on
from tests.fabric.sizing.problems import cycles_of


def answers(*found: tuple[int, int | None]) -> list[Answer]:
    return [Answer({"a.0": depth}, (cycles,)) for depth, cycles in found]


@given(
    st.integers(0, 4), st.lists(st.integers(1, 3), max_size=4), st.integers(1, 3),
    st.integers(1, 3),
)  # fmt: skip
def test_settled_since_is_the_least_by_definition(
    before: int, odd: list[int], depth: int, period: int
) -> None:
    cycles = [10]
    for step in [*odd, *[period] * before]:
        cycles.append(cycles[-1] + step)
    given_ = answers(*((depth, each) for each in cycles))

    possible = [
        first
        for first in range(1, len(cycles) - 1)
        if len({b - a for a, b in zip(cycles[first - 1 :], cycles[first:], strict=False)}) == 1
    ]

    assert min(possible, default=None) == settled(given_).since


@pytest.mark.parametrize(
    ("name", "since", "period_cycles"),
    [("swiglu", 1, 35_072), ("buffer_twice", 1, 1_024), ("simplified_moe", None, None)],
)
def test_settled_programs_have_a_period(
    name: str, since: int | None, period_cycles: int | None
) -> None:
    program = load_on(None, f"programs/{name}.py", [], {}).program
    runs = [Answer({}, (cycles_of(program, {}, count),)) for count in range(1, 5)]

    found = settled(runs)

    assert found.since == since
    still = "not settled: the cycles of a further input still change"
    assert (since is None) == (str(found) == still)
    if period_cycles is not None:
        assert found.period_cycles == (period_cycles,)

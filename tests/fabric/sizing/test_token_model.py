from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.explore.sizing.paper_lp import Precedence, max_tokens, start_delays
from tests.profiles import examples

INTERVALS = st.builds(Fraction, st.integers(1, 30), st.integers(1, 4))


@st.composite
def graphs(
    draw: st.DrawFn, kernels: int = 6, delay_cycles: int = 20
) -> tuple[int, list[Precedence]]:
    kernels = draw(st.integers(2, kernels))
    pairs = [(source, target) for target in range(kernels) for source in range(target)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    relabelled = draw(st.permutations(range(kernels)))
    return kernels, [
        Precedence(relabelled[source], relabelled[target], draw(st.integers(0, delay_cycles)))
        for source, target in chosen
    ]


def test_max_tokens_is_that_of_figure_8a() -> None:
    assert 3 == max_tokens(5, 3, 3, Fraction(1), Fraction(2))


@pytest.mark.parametrize(("first", "second"), [(3, 5), (7, 2), (1, 1)])
def test_start_delays_are_those_of_figure_8f(first: int, second: int) -> None:
    precedences = [Precedence(0, 1, first), Precedence(1, 2, second), Precedence(0, 2, first)]

    assert [first, second, first + second] == start_delays(3, precedences).tolist()


@given(st.integers(1, 30), st.integers(0, 60), st.integers(0, 20), INTERVALS, INTERVALS)
def test_max_tokens_is_the_counted_number(
    tokens: int, later: int, delay: int, source: Fraction, target: Fraction
) -> None:
    # A token is gone one interval of the target after the target took it.
    started = delay + later
    given_at = [delay + number * source for number in range(tokens)]
    gone_at = [started + (number + 1) * target for number in range(tokens)]
    if source < target:
        waiting = max(
            number + 1 - sum(gone <= cycle for gone in gone_at)
            for number, cycle in enumerate(given_at)
        )
    else:
        waiting = sum(cycle < started for cycle in given_at)

    assert waiting == max_tokens(tokens, started, delay, source, target)


@examples(quick=12, deep=100)
@given(graphs(kernels=4, delay_cycles=3))
def test_start_delays_have_the_least_sum(graph: tuple[int, list[Precedence]]) -> None:
    kernels, precedences = graph
    starts = np.indices((10,) * kernels).reshape(kernels, -1)
    source, target, delay_cycles = np.array(precedences).T
    delays = starts[target] - starts[source]
    possible = (delays >= delay_cycles[:, None]).all(axis=0)

    assert delays.sum(axis=0)[possible].min() == start_delays(kernels, precedences).sum()

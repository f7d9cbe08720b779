"""StreamTensor's formulas: the figures of the paper, and counting in place of closed forms."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fabric import ConfigurationError
from fabric.explore.sizing.paper_lp import Precedence, credit_slots, max_tokens, start_delays
from tests.profiles import examples

INTERVALS = st.builds(Fraction, st.integers(1, 30), st.integers(1, 4))


@st.composite
def graphs(
    draw: st.DrawFn, kernels: int = 6, delay_cycles: int = 20
) -> tuple[int, list[Precedence]]:
    """Return a graph without circles of up to so many kernels, with a delay for each edge."""
    kernels = draw(st.integers(2, kernels))
    pairs = [(source, target) for target in range(kernels) for source in range(target)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    relabelled = draw(st.permutations(range(kernels)))
    return kernels, [
        Precedence(relabelled[source], relabelled[target], draw(st.integers(0, delay_cycles)))
        for source, target in chosen
    ]


def paths(precedences: Sequence[Precedence], source: int, target: int) -> Iterator[tuple[int, ...]]:
    """Yield every path between two kernels, as places in ``precedences``."""
    if source == target:
        yield ()
    for place, each in enumerate(precedences):
        if each.source == source:
            for rest in paths(precedences, each.target, target):
                yield (place, *rest)


def constraints(kernels: int, precedences: Sequence[Precedence]) -> list[tuple[set[int], int]]:
    """Return every path and the least that its delays may add up to."""
    found = []
    for source in range(kernels):
        for target in range(kernels):
            its = [path for path in paths(precedences, source, target) if path]
            delays = [sum(precedences[each].delay_cycles for each in path) for path in its]
            found += [(set(path), max(delays)) for path in its]
    return found


def per_path(kernels: int, precedences: Sequence[Precedence]) -> int:
    """Return the least sum of delays of which every path has enough."""
    every = constraints(kernels, precedences)
    matrix = [[-float(place in path) for place in range(len(precedences))] for path, _ in every]
    least = [-float(cycles) for _, cycles in every]
    found = linprog(np.ones(len(precedences)), A_ub=np.array(matrix), b_ub=least)
    total: float = found.fun
    return round(total)


class TestFigures:
    def test_8a(self) -> None:
        """Five tokens, one a cycle from cycle 3 on, taken every second: at most 3 wait."""
        assert 3 == max_tokens(5, 3, 3, Fraction(1), Fraction(2))

    @pytest.mark.parametrize(("first", "second"), [(3, 5), (7, 2), (1, 1)])
    def test_8f(self, first: int, second: int) -> None:
        """K0 to K1 to K2 and K0 to K2: delays are D0, D1 and D0 + D1."""
        precedences = [Precedence(0, 1, first), Precedence(1, 2, second), Precedence(0, 2, first)]

        assert [first, second, first + second] == start_delays(3, precedences).tolist()


class TestTokens:
    @given(st.integers(1, 30), st.integers(0, 60), st.integers(0, 20), INTERVALS, INTERVALS)
    def test_counted(
        self, tokens: int, later: int, delay: int, source: Fraction, target: Fraction
    ) -> None:
        """A source that is faster leaves most when it ends, another one when the target starts.

        A token is gone when the target has had its interval for it.
        """
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

    @pytest.mark.parametrize(
        ("loop", "interval", "slots"),
        [(2, Fraction(1), 2), (9, Fraction(1), 9), (9, Fraction(4), 3), (2, Fraction(5, 2), 1)],
    )
    def test_credit_slots(self, loop: int, interval: Fraction, slots: int) -> None:
        """A loop of so many cycles has a token of every interval in it."""
        assert slots == credit_slots(loop, interval)


class TestProgram:
    @examples(quick=25, deep=100)
    @given(graphs())
    def test_paths(self, graph: tuple[int, list[Precedence]]) -> None:
        """Delays are no less along any path than along any other between the same kernels."""
        kernels, precedences = graph

        delays = start_delays(kernels, precedences)

        for path, least in constraints(kernels, precedences):
            assert sum(delays[list(path)]) >= least

    @examples(quick=25, deep=100)
    @given(graphs(kernels=4, delay_cycles=3))
    def test_least(self, graph: tuple[int, list[Precedence]]) -> None:
        """No starts at all have a lesser sum."""
        kernels, precedences = graph
        starts = np.indices((10,) * kernels).reshape(kernels, -1)
        source, target, delay_cycles = np.array(precedences).T
        delays = starts[target] - starts[source]
        possible = (delays >= delay_cycles[:, None]).all(axis=0)

        assert delays.sum(axis=0)[possible].min() == start_delays(kernels, precedences).sum()

    @examples(quick=25, deep=100)
    @given(graphs())
    def test_relaxed(self, graph: tuple[int, list[Precedence]]) -> None:
        """The program with one constraint a path, as the paper has it, gives no more."""
        kernels, precedences = graph

        assert per_path(kernels, precedences) <= start_delays(kernels, precedences).sum()

    def test_crosswise(self) -> None:
        """It may give less: delays that no starts have.

        Of K0 and K1 that both feed K2 and K3, with a detour from K0 to K3 that takes 5 more, the
        delays are 1, 1, 6 and 1, if one looks at paths only; but 1 + 1 is not 6 + 1.
        """
        crossed = [(0, 2, 1), (1, 2, 1), (0, 3, 1), (1, 3, 1), (0, 4, 1), (4, 3, 5)]
        precedences = [Precedence(*each) for each in crossed]

        assert 1 + 1 + 6 + 1 + 1 + 5 == per_path(5, precedences)
        assert 1 + 6 + 6 + 1 + 1 + 5 == start_delays(5, precedences).sum()

    def test_nothing(self) -> None:
        """Kernels that feed nobody have no delays."""
        assert [] == start_delays(3, []).tolist()

    def test_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the extra it says which one is needed."""
        monkeypatch.setitem(sys.modules, "scipy.optimize", None)

        with pytest.raises(
            ConfigurationError,
            match=r"^paper-lp needs scipy, which is not installed: expected the extra sizing, as "
            r"in pip install 'step-fabric\[sizing\]'$",
        ):
            start_delays(2, [Precedence(0, 1, 1)])

"""Compares every operator with its definition over nested lists, on streams of any structure."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.cases import CASES
from tests.operators.driving import Case, Choices, run_cases
from tests.profiles import of_profile, spread

_BATCH = 25
"""Cases in one program; one run and one report check them all."""

_BYTES = 48
"""Decisions drawn for a case; later decisions are the simplest. All cases of a program share one
string: lists of strings would mostly repeat a few strings."""


_COLLECT = 50
"""Programs between two garbage collections."""


def _check(build: Callable[[Choices], Case], batches: int) -> None:
    done = count(1)

    @settings(max_examples=batches)
    @given(st.binary(min_size=_BYTES * _BATCH, max_size=_BYTES * _BATCH))
    def check(batch: bytes) -> None:
        starts = range(0, len(batch), _BYTES)
        run_cases([build(Choices(batch[start : start + _BYTES])) for start in starts])
        if not next(done) % _COLLECT:
            gc.collect()

    check()


@pytest.mark.parametrize("operator", spread(CASES, 1))
def test_operator_is_as_defined(operator: str) -> None:
    _check(CASES[operator], of_profile(quick=150, deep=2_000) // _BATCH)


@pytest.mark.exhaustive
@pytest.mark.parametrize("operator", CASES)
def test_operator_is_as_defined_exhaustively(operator: str) -> None:
    _check(CASES[operator], 105_000 // _BATCH)

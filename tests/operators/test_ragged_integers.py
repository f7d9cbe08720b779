"""RaggedIntegers: lists of any length as a stream, and what is no list of lists of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fabric import FabricError, Program
from fabric.extend import number_in
from operators import RaggedIntegers
from tests.operators.writing import run


def emitted(lists: Any) -> tuple[str, int]:
    """Return the stream of ``lists`` as text, and the cycles."""
    report, (text,) = run(RaggedIntegers(lists), show=lambda value: str(number_in(value)))
    assert report.cycles is not None, report.error
    return text, report.cycles


@pytest.mark.parametrize(
    ("lists", "stream"),
    [
        ([[7, 8], [9]], "7 8|S1 9|S2"),
        ([[], [5], []], "-0|S1 5|S1 -0|S2"),
        ([[]], "-0|S2"),
        ([], "-1|S2"),
        ((range(2), np.array([3, 4])), "0 1|S1 3 4|S2"),
        ([[2**64 - 1]], f"{2**64 - 1}|S2"),
    ],
)
def test_stream(lists: Sequence[Sequence[int]], stream: str) -> None:
    """Every list is a group; an empty one closes alone."""
    assert stream == emitted(lists)[0]


def test_cycles() -> None:
    """One cycle an element: 100 of them end when the last has been taken."""
    first, second = (emitted([[3] * size])[1] for size in (50, 150))
    assert 100 == second - first


def test_shape() -> None:
    """[1, lists, ragged] of integers."""
    with Program("lists"):
        assert "[1, 2, D_ragged_integers_1~]" in str(RaggedIntegers([[1], [2, 3]])())


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1], [-1]], "RaggedIntegers is given -1 in list 1: expected integers from 0 to "),
        ([[1.5]], "RaggedIntegers is given 1.5 in list 0: expected integers from 0 to "),
        ([[True]], "RaggedIntegers is given True in list 0: expected integers from 0 to "),
        ([[2**64]], f"RaggedIntegers is given {2**64} in list 0: expected integers from 0 to "),
        (["ab"], "RaggedIntegers: lists is the list ['ab']: expected a list of lists of integers"),
        ([1, 2], "RaggedIntegers: lists is the list [1, 2]: expected a list of lists of integers"),
        (7, "RaggedIntegers: lists is 7: expected a list of lists of integers"),
    ],
)
def test_something_else(lists: Any, message: str) -> None:
    """Refused while it is wired."""
    with Program("lists"), pytest.raises(FabricError) as caught:
        RaggedIntegers(lists)()
    assert caught.value.message.startswith(message)

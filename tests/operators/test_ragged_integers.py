"""RaggedIntegers: groups and cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fabric.extend import number_in
from operators import RaggedIntegers
from tests.operators.writing import run


def emitted(lists: Any) -> tuple[str, int]:
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
def test_every_list_is_a_group(lists: Sequence[Sequence[int]], stream: str) -> None:
    assert stream == emitted(lists)[0]

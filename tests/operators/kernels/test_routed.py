from __future__ import annotations

from typing import Any

import numpy as np

from operators.kernels.routed import (
    Routing,
    drawn,
)


def test_choice_is_read_once_and_counted() -> None:
    asked: list[int] = []

    def choice(experts: int) -> Any:
        asked.append(experts)
        return np.array([[0, 2], [3, 2]], np.uint8)

    found = Routing(0, 2, 2, choice, "the choice")
    found.experts = 5
    assert [1, 0, 2, 1, 0] == found.counts()
    assert [[0, 2], [3, 2]] == found.choice().tolist()
    assert [5] == asked
    assert np.int64 == found.choice().dtype


def test_drawn_choice_is_distinct_and_repeatable() -> None:
    found = drawn(1, 40, 3)(5)
    assert (40, 3) == found.shape
    assert all(len(set(row)) == 3 for row in found.tolist())
    assert set(range(5)) == set(found.reshape(-1).tolist())
    assert found.tolist() == drawn(1, 40, 3)(5).tolist() != drawn(2, 40, 3)(5).tolist()

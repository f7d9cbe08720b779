"""Routed rows while a model is planned: the choice, what is known of it, and where forms meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric import ProgramError
from operators.kernels.grouped import common_form
from operators.kernels.routed import KnownRows, Packing, Routed, Routing, Spread, drawn


def routing(choice: Any, experts: int = 3) -> Routing:
    """Return the routing of two tokens to two experts each."""
    found = Routing(0, 2, 2, lambda _: np.array(choice), "the choice")
    found.experts = experts
    return found


def test_choice() -> None:
    """The experts of each token, asked for once, and the tokens of each expert."""
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


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([[0, 1]], "is an array [1, 2] of int64: expected integers [2, 2], the experts of each"),
        ([[0.0, 1.0]] * 2, "is an array [2, 2] of float64: expected integers [2, 2], the experts"),
        ([[0, 1], [1, 3]], "names experts 0 to 3: expected 0 to 2"),
        ([[-1, 1], [1, 2]], "names experts -1 to 2: expected 0 to 2"),
        ([[0, 1], [2, 2]], "names expert 2 twice for token 1: expected different experts"),
    ],
)
def test_what_is_no_choice(choice: Any, message: str) -> None:
    """Another array, experts that are not there, and one twice."""
    with pytest.raises(ProgramError) as caught:
        routing(choice).choice()
    assert caught.value.message.startswith(f"the choice {message}")


def test_a_choice_at_random() -> None:
    """Different experts for each token, the same ones every time, others in another layer."""
    found = drawn(1, 40, 3)(5)
    assert (40, 3) == found.shape
    assert all(len(set(row)) == 3 for row in found.tolist())
    assert set(range(5)) == set(found.reshape(-1).tolist())
    assert found.tolist() == drawn(1, 40, 3)(5).tolist() != drawn(2, 40, 3)(5).tolist()


@pytest.mark.parametrize(
    ("experts", "order", "where", "count", "places"),
    [
        # Rows 0 and 1 go to expert 0, rows 1 and 0 to expert 2 in ascending order.
        ([0, 0, 2, 2], [0, 1, 2, 3], [0, 1, 0, 1], 2, [[0, 2], [0, 2]]),
        ([0, 1, 1, 2], [0, 2, 1, 3], [1, 1, 0, 0], 2, [[1, 2], [0, 1]]),
        ([0, 0], [0, 1], [0, 1], 2, [[0], [0]]),
        # In another order, to different numbers of experts, and more than goes around.
        ([0, 0, 2, 2], [0, 1, 2, 3], [0, 1, 1, 0], 2, None),
        ([0, 0], [0, 1], [0, 0], 1, None),
        ([0, 1, 1, 2], [0, 1, 2, 3], [0, 0, 1, 0], 2, None),
        ([0, 1, 2], [0, 1, 2], [0, 1, 0], 2, None),
    ],
)
def test_known_rows(
    experts: list[int], order: list[int], where: list[int], count: int, places: Any
) -> None:
    """The experts that each row goes to, where all go to as many and come in order."""
    found = KnownRows(np.array(experts), np.array(order)).places(np.array(where), count)
    assert places == (None if found is None else found.tolist())


def test_where_forms_meet() -> None:
    """In tiles where all were packed together, whole where one is or has to be; else in rows."""
    route, packing, other = routing([[0, 1]] * 2), Packing(1), Packing(1)
    rows = Routed(route, Spread.ROWS)
    packed, tiled = (Routed(route, each, packing) for each in (Spread.PACKED, Spread.TILED))
    elsewhere = Routed(route, Spread.PACKED, other)
    for forms, any_, whole in (
        ([rows, rows], rows, rows),
        ([packed, packed], packed, packed),
        ([tiled, tiled], tiled, packed),
        ([tiled, packed], packed, packed),
        ([packed, tiled], packed, packed),
        ([packed, rows], rows, rows),
        ([packed, elsewhere], rows, rows),
        ([tiled], tiled, packed),
    ):
        assert any_ == common_form(forms, whole_rows=False)
        assert whole == common_form(forms, whole_rows=True)

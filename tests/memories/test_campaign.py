"""Programs of the campaign whose cycles a capacity that nothing fills once changed."""

from __future__ import annotations

import pytest

from tests.campaign import tried


@pytest.mark.parametrize(
    "number", [3, 11, pytest.param(55, marks=pytest.mark.deep), 2283, 2291, 2585]
)
def test_holding_tracing_and_free_room_change_no_cycle(number: int) -> None:
    """On every memory model, by tasks and compiled."""
    assert tried(number, seed=1).wrong == ()

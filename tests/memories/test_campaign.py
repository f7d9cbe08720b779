from __future__ import annotations

import pytest

from tests.campaign import tried
from tests.profiles import spread

DEEP = [pytest.param(number, marks=pytest.mark.deep) for number in (11, 55)]


# A capacity that nothing filled once changed the cycles of these programs.
@pytest.mark.parametrize("number", spread([3, 2283, 2291, 2585, *DEEP], 1))
def test_holding_tracing_and_free_room_change_no_cycle(number: int) -> None:
    assert tried(number, seed=1).wrong == ()

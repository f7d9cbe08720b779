"""Runs on a mesh: against a model that steps through cycles, and against hops given one by one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.network.placed import Placed, expected_clocks, placed_graphs, run_placed
from tests.profiles import examples
from tests.schedules import SCHEDULES


@examples(quick=40, deep=2000)
@given(placed_graphs(), st.sampled_from(SCHEDULES))
def test_matches_a_model_that_steps_through_cycles(placed: Placed, order: str | int) -> None:
    """Every operation of random placed graphs happens in the same cycle, in whatever order."""
    with TemporaryDirectory() as folder:
        clocks, report = run_placed(placed, Path(folder), order)
    assert report.status == "completed"
    assert expected_clocks(placed) == clocks

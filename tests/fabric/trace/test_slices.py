from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.trace.analysis.timeline import Interval, Timelines, slices
from fabric.messages.causes import WAITS, Cause
from tests.profiles import examples


@st.composite
def timelines_of_one(draw: st.DrawFn) -> Timelines:
    waits, cycle = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = cycle + draw(st.integers(0, 3))
        cycle = start + draw(st.integers(1, 4))
        waits.append(_wait(start, cycle, draw(st.sampled_from(WAITS)), is_open=False))
    final = cycle + draw(st.integers(0, 4))
    if draw(st.booleans()):
        end = final + draw(st.integers(0, 4))
        waits.append(_wait(final, end, draw(st.sampled_from(WAITS)), is_open=True))
    first = draw(st.integers(0, 12))
    last = first + draw(st.integers(0, 20))
    return Timelines(["unit"], first, last, [waits], [final], [None], [True])


def _wait(start: int, end: int, cause: Cause, *, is_open: bool) -> Interval:
    return Interval(start, end, cause, 3, 1, end, False, 0, is_open)


@examples(100, 2000)
@given(timelines_of_one())
def test_slices_have_the_state_of_each_cycle(lines: Timelines) -> None:
    found = list(slices(lines, 0))

    states = {cycle: each.state for each in found for cycle in range(each.start, each.end)}
    assert len(states) == sum(each.end - each.start for each in found)
    waits = {cycle: wait.cause for wait in lines.waits[0] for cycle in range(wait.start, wait.end)}
    window = range(lines.first, lines.last)
    busy = {cycle: Cause.BUSY for cycle in window if cycle < lines.final[0]}
    assert states == busy | {cycle: waits[cycle] for cycle in window if cycle in waits}


@examples(100, 2000)
@given(timelines_of_one())
def test_slices_follow_each_other_without_gaps(lines: Timelines) -> None:
    found = list(slices(lines, 0))

    for before, after in pairwise(found):
        assert before.end == after.start
    for each in found:
        assert lines.first <= each.start <= each.end <= lines.last
        assert each.start < each.end or each.open
        assert (each.until == -1) == (each.state == Cause.BUSY or each.open)
    (waits,) = lines.waits
    if waits and waits[-1].open and lines.first <= waits[-1].start <= lines.last:
        assert found[-1].open

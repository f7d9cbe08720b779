"""How far a stage is in its stretch, against a run of the stretch one operation at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric.timing.compiled import columns as c
from fabric.timing.retiming.log_tables import done_since
from tests.profiles import examples

Operation = tuple[int, int, int]
"""What it is; its amount; of a REPEAT, how many operations before it are repeated."""

_COUNT = (c.TAKE, c.SEND, c.SEND_AT, c.RESERVE, c.PUT, c.UNTIL, c.BURST)

_PLAIN = st.tuples(
    st.one_of(
        st.just(c.CHARGE), st.sampled_from(_COUNT), st.sampled_from((c.NOTE, c.MARK, c.COMPUTE))
    ),
    st.integers(0, 9),
    st.just(0),
)


@st.composite
def _stretches(draw: st.DrawFn) -> list[Operation]:
    """Return a stretch of operations, some of which are repeated together."""
    found: list[Operation] = []
    for _ in range(draw(st.integers(1, 4))):
        together = draw(st.lists(_PLAIN, min_size=1, max_size=4))
        found += together
        if draw(st.booleans()):
            found.append((c.REPEAT, draw(st.integers(2, 4)), len(together)))
    return found


def _moments(stretch: list[Operation]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where a run is before each operation.

    Its place, the rounds of what is repeated there, how many operations that count it has done, and
    the cycles of work since the last of them.
    """
    place = rounds = done = work = 0
    while place < len(stretch):
        yield place, rounds, done, work
        what, amount, back = stretch[place]
        if what == c.REPEAT:
            rounds += 1
            if rounds < amount:
                place -= back
                continue
            rounds = 0
        elif what == c.CHARGE:
            work += amount
        elif what in _COUNT:
            done, work = done + 1, 0
        place += 1


@examples(quick=60, deep=2000)
@given(_stretches(), st.integers(0, 5))
def test_done_since(stretch: list[Operation], began: int) -> None:
    """At each operation, wherever the stretch stands among all operations."""
    operations = np.zeros((began + len(stretch) + 1, c.OPERATION_COLUMNS), np.int64)
    operations[began:-1, [c.WHAT, c.AMOUNT, c.AT]] = stretch
    operations[-1, c.WHAT] = c.REPEAT  # of the stretch behind
    for place, rounds, done, work in _moments(stretch):
        row = [0] * c.STAGE_COLUMNS
        row[c.BEGAN], row[c.PC], row[c.TIMES] = began, began + place, rounds
        assert done_since(operations, row) == (done, work)

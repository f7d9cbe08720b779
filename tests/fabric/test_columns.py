from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from fabric.display.columns import aligned
from tests.profiles import examples

WORDS = st.lists(st.text("abc_.0", min_size=1, max_size=14), min_size=1, max_size=9)
TABLES = st.integers(1, 6).flatmap(
    lambda count: st.lists(
        st.lists(WORDS.map(" ".join), min_size=count, max_size=count), min_size=1, max_size=4
    )
)


@examples(quick=20, deep=2000)
@given(rows=TABLES, room=st.integers(24, 160))
def test_rows_keep_every_word_within_the_room(rows: list[list[str]], room: int) -> None:
    lines = aligned(rows, room)
    assert max(map(len, lines)) <= room
    for row in rows:
        (alone,) = {" ".join(aligned([row], None))}
        assert alone.split() == " ".join(row).split()
        found = " ".join(aligned([row], room)).split()
        assert sorted(found) == sorted(alone.split())

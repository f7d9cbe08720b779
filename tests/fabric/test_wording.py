from __future__ import annotations

import dis
from pathlib import Path

import numpy as np
import pytest

from fabric.messages.place import Place, defining_place, is_ours, line_in
from fabric.messages.text import found_text, merged_text, untellable
from operators import Exp


@pytest.mark.parametrize(
    ("texts", "merged"),
    [
        (["a_1", "a_1"], "a_1"),
        (["a_1", "b_1"], "a_1"),
        (["a_3", "a_1", "a_2"], "a_1..3"),
        (["a_1", "a_3"], "a_i"),
        (["a_1", "a_1", "a_2"], "a_i"),
        (["a_0..2", "a_3..4"], "a_i"),
        (["a_9_x4", "a_10_x4", "a_11_x4"], "a_9..11_x4"),
    ],
)
def test_numbered_names_merge_into_a_range(texts: list[str], merged: str) -> None:
    assert merged == merged_text(texts)


def _deep(levels: int) -> object:
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_value_without_json_is_described() -> None:
    assert untellable(_deep(64)) is None
    assert untellable(_deep(65)) == (
        "a dict that contains itself, is more than 64 deep or has more than 1,000,000 values"
    )
    assert untellable({1: 0, "1": 0}) == "a dict with two names that are one as text"
    assert untellable([{"a": 1, "b": (1.5, None, True, np.int8(1), np.ones(2))}]) is None
    assert untellable(10**4299) is None
    assert untellable([10**4300]) == "an integer of more than 4,300 digits"


def test_instruction_has_the_line_of_the_user() -> None:
    code = _deep.__code__
    told = {each.offset: each.positions for each in dis.get_instructions(code)}
    first = code.co_firstlineno
    found = {at: line_in(code, at) for at in told}
    assert found == {
        at: Place(__file__, (its.lineno if its is not None else None) or first)
        for at, its in told.items()
    }
    assert len({place.line for place in found.values() if place is not None}) > 3
    assert line_in(code, len(code.co_code)) == Place(__file__, first)
    assert line_in(found_text.__code__, 0) is None
    assert defining_place(_deep) == Place(__file__, first)
    assert defining_place(found_text) is defining_place(3) is None
    assert [is_ours(each) for each in (Exp, Place, Path)] == [True, True, False]
    assert Place("a/b.py", 3).brief == "b.py:3"

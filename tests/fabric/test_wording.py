"""Pieces of sentences: names, numbers, values and lists as messages write them."""

from __future__ import annotations

import dis
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fabric import Tile
from fabric.messages.telling.place import Place, defining_place, is_ours, line_in
from fabric.messages.telling.plain import json_text, plain, untellable
from fabric.messages.telling.sheet import cell_text, is_number
from fabric.messages.telling.wording import (
    a_or_an,
    absent_line,
    ceiling_text,
    close_to,
    counted,
    families,
    file_name,
    flag_text,
    folded_sum,
    found_text,
    legible,
    listed,
    merged_text,
    one_of,
    outcome,
    spread,
    those,
    visible,
    without_numbers,
)
from operators import Exp


def _named(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (1 << 9_999, f"{1 << 9_999}"[:18]),
        (1 << 10_000, "an integer of thousands of digits"),
        (None, "None"),
        ("a", "'a'"),
        (int, "the class int"),
        (_named, "the function _named"),
        (lambda: 0, "a lambda"),
        ([].append, "the function append"),
        (np.zeros((2, 3), np.int8), "an array [2, 3] of int8"),
        ([1, "a"], "the list [1, 'a']"),
        ((), "the tuple ()"),
        ([Exp(), 1, Exp()], "a list of Exps and ints"),
        ((Exp(),), "a tuple of Exps"),
        ({"a": 1}, "the dict {'a': 1}"),
        ({1}, "the set {1}"),
        (Fraction(1, 2), "Fraction(1, 2)"),
        (np.float64(0.5), "np.float64(0.5)"),
        (Exp(), "an Exp"),
        (Tile(1, 1, np.dtype(np.int8)), "a Tile"),
        (partial(_named), "a partial"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_found(value: object, text: str) -> None:
    """A value that was not expected: itself where it is simple, else its class or its parts."""
    assert found_text(value).startswith(text)
    assert ("thousands" in found_text(value)) == ("thousands" in text)


def test_lists() -> None:
    """Of many names the eight most like the one that was found; the closest is asked about."""
    eight = [f"name_{letter}" for letter in "abcdefgh"]
    assert close_to(eight, "x") == f"one of {', '.join(eight)}"
    assert close_to([*eight, "far", "beyond"], "name_k") == (
        f"one of {', '.join(eight)} (did you mean name_h?)"
    )
    assert one_of(["map", "load"], "laod") == "one of map, load (did you mean load?)"
    assert one_of(["map", "load"], "zzz") == "one of map, load"
    assert listed(["a", "b", "c"]) == "a, b or c"
    assert [a_or_an("Exp"), a_or_an("int"), a_or_an("Tile")] == ["an Exp", "an int", "a Tile"]


def test_names_of_files() -> None:
    """Letters, numbers, dots and dashes stay; nothing is hidden, leads elsewhere or is too long."""
    assert file_name("a/b c-1_2.x") == "a_b_c-1_2.x"
    assert file_name("..x") == "x"
    assert file_name("..") == "program"
    assert file_name("x" * 101) == "x" * 100
    assert file_name("é" * 51) == "é" * 50


def test_letters_that_are_obeyed() -> None:
    """Lines and tabs stay in a message, and what is in a name is written out with all others."""
    assert legible("a\tb\nc\r\x1b\x08\x0b\x1f \x7f\x9f\xa0") == (
        "a\tb\nc\\r\\x1b\\x08\\x0b\\x1f \\x7f\\x9f\xa0"
    )
    assert legible("\u2029\u202a\u202e\u202f\u2065\u2066\u2069\ud800\udfff\ue000") == (
        "\u2029\\u202a\\u202e\u202f\u2065\\u2066\\u2069\\ud800\\udfff\ue000"
    )
    assert visible("a\tb\nc é\xa0") == "a\\tb\\nc é\\xa0"


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
def test_merged(texts: list[str], merged: str) -> None:
    """A range where numbers are consecutive, in any order; i where they are not."""
    assert merged == merged_text(texts)


def test_sums() -> None:
    """Four terms that are alike are written one by one, five as a sum; what is less is taken."""
    assert folded_sum(["a_0", "a_1", "a_2", "a_3"]) == "a_0 + a_1 + a_2 + a_3"
    assert folded_sum(["a_0", "b", "a_1", "a_2", "a_3", "a_4"]) == "sum(a_0..4) + b"
    assert folded_sum(["a", "-b"]) == "a - b"


def test_absent() -> None:
    """Six families are all named, and a family of one has no number."""
    six = families([f"{letter}_0" for letter in "abcdef"], str)
    assert absent_line(six) == "6 units never got an element: a_0, b_0, c_0, d_0, e_0, f_0"
    assert absent_line(six[:1]) == "1 unit never got an element: a_0"
    many = families([f"a_{number}" for number in range(1000)], str)
    assert absent_line(many) == "1,000 units never got an element: a_0..999 (x 1,000)"


def test_more_than_six_are_absent() -> None:
    """Of seven families six are named, and of a thousand more as many as that are counted."""
    seven = families([f"{letter}_0" for letter in "abcdefg"], str)
    assert absent_line(seven) == (
        "7 units never got an element: a_0, b_0, c_0, d_0, e_0, f_0, 1 more"
    )
    many = families([f"{'a' * (number + 1)}_0" for number in range(1006)], str)
    assert absent_line(many).endswith(", aaaaaa_0, 1,000 more")


def test_families() -> None:
    """Of one pattern and of what they share; the lower of two medians; those of them that fit."""
    names = ["a_1", "b_7", "a_2", "a_9", "a_3", "b_7"]
    found = families(range(6), names.__getitem__)
    assert found == [("a_i", (0, 2, 3, 4)), ("b_7", (1, 5))]
    assert families(range(6), names.__getitem__, (5).__gt__, (3).__eq__) == [
        ("a_1..3", (0, 2, 4)), ("b_7", (1,)), ("a_9", (3,)), ("b_7", (5,)),
    ]  # fmt: skip
    assert those(found, (3).__gt__) == [("a_i", (0, 2)), ("b_7", (1,))]
    assert those(found, (4).__lt__) == [("b_7", (5,))]
    assert spread([3], abs) == (3, 3, 3)
    assert spread([-4, 1], abs) == (1, 1, -4)
    assert spread([-4, 1, 3], abs) == (1, 3, -4)
    assert spread([-4, 1, 3, 2], abs) == (1, 2, -4)
    assert spread([-1, 1, -1], abs) == (-1, 1, -1)


def test_small_words() -> None:
    """How a run ended, how many there are, what is rounded up or may be none."""
    assert [outcome("completed", each) for each in (None, True, False)] == [
        "completed", "completed, verified", "completed, the result is wrong",
    ]  # fmt: skip
    assert [counted(n, "box") for n in (0, 1, 2_048)] == ["0 boxes", "1 box", "2,048 boxes"]
    assert [counted(2, noun) for noun in ("class", "unit", "x")] == [
        "2 classes",
        "2 units",
        "2 xes",
    ]
    assert ceiling_text("D", 4, is_sum=False) == "ceil(D/4)"
    assert ceiling_text("D + 1", 4, is_sum=True) == "ceil((D + 1)/4)"
    assert flag_text("D") == "min(1, D)"
    assert without_numbers("a_12.x4 -> b_0") == "a_#.x# -> b_#"
    assert merged_text(["a_0..2 b_1", "a_0..2 b_2"]) == "a_0..2 b_1..2"


@pytest.mark.parametrize("text", ["1", "-1", "+1.5", ".5", "1,234.5", "1e-05", "1.5e+20"])
def test_numbers_stand_right(text: str) -> None:
    """What is written as a number, or is one."""
    assert is_number(text)
    assert not is_number(f"{text} %")


def test_cells() -> None:
    """Numbers have separators, truth values are words, and nothing is empty."""
    assert list(map(cell_text, (1234, 1234.5, True, False, None, "a", 0))) == [
        "1,234", "1,234.5", "yes", "no", "", "a", "0",
    ]  # fmt: skip
    assert [is_number(each) for each in ("", ".", "a1", None, 0)] == [False] * 3 + [True] * 2


def test_plain() -> None:
    """Numbers of numpy are Python's; what JSON has no number for is text."""
    found = plain(
        {1: (np.int64(3), np.float32("inf")), "a": [np.array(2.5), np.ones(1)], None: Path("x")}
    )
    assert found == {"1": [3, "inf"], "a": [2.5, "[1.]"], "None": "x"}
    assert plain(np.longdouble(2)) == "2.0"
    assert json_text({"a": [1.5, float("nan")]}) == '{\n  "a": [\n    1.5,\n    "nan"\n  ]\n}\n'


def _deep(levels: int) -> object:
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_untellable() -> None:
    """What has no end is no JSON, nor what has two equal names or thousands of digits."""
    assert untellable(_deep(64)) is None
    assert untellable(_deep(65)) == (
        "a dict that contains itself, is more than 64 deep or has more than 1,000,000 values"
    )
    assert untellable({1: 0, "1": 0}) == "a dict with two names that are one as text"
    assert untellable([{"a": 1, "b": (1.5, None, True, np.int8(1), np.ones(2))}]) is None
    assert untellable(10**4299) is None
    assert untellable([10**4300]) == "an integer of more than 4,300 digits"


def test_lines() -> None:
    """Each instruction of a user's function has its line, and the function begins at its first."""
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

"""Spaces: their settings are those of nested loops, and none is made before it is asked for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Space, geometric, grid, zipped
from fabric.explore.study.opening import scalar, space_of

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)


@given(first=VALUES, second=VALUES, third=VALUES, fourth=VALUES)
def test_settings(first: list[int], second: list[int], third: list[int], fourth: list[int]) -> None:
    """Products have the last axis fastest, sums one space after the other."""
    space = grid(a=first, b=second) * zipped(c=third, d=[-each for each in third]) + grid(a=fourth)
    loops = [
        {"a": a, "b": b, "c": c, "d": -c} for a, b, c in itertools.product(first, second, third)
    ] + [{"a": a} for a in fourth]
    assert len(space) == len(loops)
    assert list(space) == loops
    assert [list(space[index]) for index in range(len(space))] == [list(each) for each in loops]
    assert set(space.values["a"]) == {*first, *fourth}


def test_large() -> None:
    """A grid far larger than memory is a few tuples."""
    space = grid({f"axis_{number}": range(1000) for number in range(6)})
    assert space[len(space) - 1] == {f"axis_{number}": 999 for number in range(6)}
    assert space[10**6 + 7] == {f"axis_{number}": 0 for number in range(3)} | {
        "axis_3": 1,
        "axis_4": 0,
        "axis_5": 7,
    }


@pytest.mark.parametrize("index", [-1, 4])
def test_outside(index: int) -> None:
    """There are no settings before the first and behind the last."""
    with pytest.raises(IndexError):
        grid(a=[1, 2], b=[3, 4])[index]


def test_values_are_told_apart() -> None:
    """1 and 1.0 are one setting, and True is another."""
    assert [repr(each["a"]) for each in grid(a=[1, 1.0, True])] == ["1", "True"]
    assert list(map(repr, grid(a=[1, 1.0, True]).values["a"])) == ["1", "True"]


@given(first=st.integers(1, 50), factor=st.integers(2, 9), power=st.integers(0, 30))
def test_geometric(first: int, factor: int, power: int) -> None:
    """Both ends are there, whatever logarithms round to."""
    expected = tuple(first * factor**each for each in range(power + 1))
    assert geometric(first, expected[-1], factor) == expected
    assert geometric(first, expected[-1] * factor - 1, factor) == expected


@pytest.mark.parametrize(
    ("texts", "space"),
    [
        (["tile_n=8,16"], grid(tile_n=[8, 16])),
        (["regions=4..128*2"], grid(regions=[4, 8, 16, 32, 64, 128])),
        (["n=3..9+3,20"], grid(n=[3, 6, 9, 20])),
        (["n=-1..1"], grid(n=[-1, 0, 1])),
        (["a=1,2", "b=x"], grid(a=[1, 2], b=["x"])),
        (["a:b=1:x,2:y"], zipped(a=[1, 2], b=["x", "y"])),
        (["hardware.hbm.channels=16"], grid({"hardware.hbm.channels": [16]})),
        (["a=none,true,1.5,007,1e6,x.npz"], grid(a=[None, True, 1.5, 7, 1_000_000, "x.npz"])),
        (["a=8,8.0,8e0,true"], grid(a=[8, True])),
        (["hop.store.0=03+4,3+4.0"], grid({"hop.store.0": ["3+4"]})),
    ],
)
def test_text(texts: list[str], space: Space) -> None:
    """What the command line takes."""
    assert space_of(texts) == space


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("tile_n", "--vary tile_n: expected NAME=VALUE,VALUE"),
        ("=3", "--vary =3: expected NAME=VALUE,VALUE"),
        ("a=", "--vary a=: expected NAME=VALUE,VALUE"),
        ("a=9..3", "--vary a=9..3: 9..3 has no values: expected FIRST..LAST with FIRST <= LAST"),
        ("a=1..3+0", "--vary a=1..3+0: 1..3+0 does not get on: expected a step of at least 1"),
        (
            "a=0..8*2",
            "--vary a=0..8*2: geometric(0, 8, 2): expected 1 <= first <= last and a "
            "factor of at least 2",
        ),
        ("a:b=1:2,3", "--vary a:b=1:2,3: 3 has 1 value: expected 2"),
        ("a:a=1:2", "--vary a:a=1:2: a:a has a name twice: expected each name once"),
    ],
)
def test_text_refused(text: str, answer: str) -> None:
    """Whatever is no axis is told with the option that has it."""
    with pytest.raises(ConfigurationError) as caught:
        space_of([text])
    assert caught.value.message == answer


def test_twice() -> None:
    """A name is varied once."""
    with pytest.raises(ConfigurationError, match="axis a is stated twice"):
        space_of(["a=1", "a=2"])


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_scalar(value: float) -> None:
    """Numbers that Python writes are read with their value; a whole one is an integer."""
    read = scalar("a", str(value))
    assert isinstance(read, int | float)
    assert type(value)(read) == value
    assert isinstance(read, int) == (value == int(value))

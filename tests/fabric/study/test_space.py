from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Space, geometric, grid, zipped
from fabric.explore.study.opening import scalar, space_of

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)


@given(first=VALUES, second=VALUES, third=VALUES, fourth=VALUES)
def test_space_has_the_settings_of_nested_loops(
    first: list[int], second: list[int], third: list[int], fourth: list[int]
) -> None:
    space = grid(a=first, b=second) * zipped(c=third, d=[-each for each in third]) + grid(a=fourth)
    loops = [
        {"a": a, "b": b, "c": c, "d": -c} for a, b, c in itertools.product(first, second, third)
    ] + [{"a": a} for a in fourth]
    assert len(space) == len(loops)
    assert list(space) == loops
    assert [list(space[index]) for index in range(len(space))] == [list(each) for each in loops]
    assert set(space.values["a"]) == {*first, *fourth}


@pytest.mark.parametrize("index", [-1, 4])
def test_index_outside_of_a_space_is_an_error(index: int) -> None:
    with pytest.raises(IndexError):
        grid(a=[1, 2], b=[3, 4])[index]


def test_equal_values_of_other_types_are_merged_except_bool() -> None:
    assert [repr(each["a"]) for each in grid(a=[1, 1.0, True])] == ["1", "True"]
    assert list(map(repr, grid(a=[1, 1.0, True]).values["a"])) == ["1", "True"]


@given(first=st.integers(1, 50), factor=st.integers(2, 9), power=st.integers(0, 30))
def test_geometric_values_have_both_ends(first: int, factor: int, power: int) -> None:
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
        (["a:b=1:x,2:y,3", "c=5"], (zipped(a=[1, 2], b=["x", "y"]) + grid(a=[3])) * grid(c=[5])),
        (["a:b=:x,1,2:"], grid(b=["x"]) + grid(a=[1, 2])),
        (["hardware.hbm.channels=16"], grid({"hardware.hbm.channels": [16]})),
        (["a=none,true,1.5,007,1e6,x.npz"], grid(a=[None, True, 1.5, 7, 1_000_000, "x.npz"])),
        (["a=8,8.0,8e0,true"], grid(a=[8, True])),
        (["hop.store.0=03+4,3+4.0"], grid({"hop.store.0": ["3+4"]})),
    ],
)
def test_axes_of_the_command_line_are_spaces(texts: list[str], space: Space) -> None:
    assert space_of(texts) == space


@pytest.mark.parametrize(
    ("text", "error"),
    [("a:b=1:2:3", "'1:2:3' has 3 values: expected 1 to 2"), ("a:b=1,:", "':' has 2 values")],
)
def test_values_that_fit_no_name_are_refused(text: str, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        space_of([text])


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_scalar_of_a_number_has_its_value(value: float) -> None:
    read = scalar("a", str(value))
    assert isinstance(read, int | float)
    assert type(value)(read) == value
    assert isinstance(read, int) == (value == int(value))

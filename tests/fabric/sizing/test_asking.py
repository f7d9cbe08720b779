from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError
from fabric.explore.sizing.depths_file import read_depths, write_depths
from fabric.explore.sizing.goal import Goal
from fabric.explore.sizing.size import cost_function
from fabric.timing.retiming.retimer import NO_LIMIT


@pytest.mark.parametrize(
    ("text", "unbounded", "limit"),
    [
        ("deadlock-free", 1000, NO_LIMIT),
        ("same-cycles", 1000, 1000),
        ("slowdown=1", 1000, 1000),
        ("slowdown=1.02", 1000, 1020),
        ("slowdown=1.02", 999, 1018),
        ("slowdown=3/2", 11, 16),
        ("cycles=7", 1000, 7),
    ],
)
def test_goal_of_a_text_allows_its_limit(text: str, unbounded: int, limit: int) -> None:
    goal = Goal.parse(text)
    assert goal.limit_cycles(unbounded) == limit
    assert Goal.parse(str(goal)) == goal


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 5000))
def test_cost_in_blocks_is_the_least_number_of_blocks(
    depth: int, element_bytes: int, step: int
) -> None:
    bare = depth * element_bytes
    blocks = cost_function("bytes", str(step))(depth, element_bytes)
    assert blocks % step == 0
    assert blocks - step < bare <= blocks
    power = cost_function("bytes", "power-of-two")(depth, element_bytes)
    assert power == (0 if bare == 0 else next(1 << n for n in range(40) if 1 << n >= bare))
    assert cost_function("bytes")(depth, element_bytes) == bare
    assert cost_function("slots")(depth, element_bytes) == depth


@pytest.mark.deep
@given(st.dictionaries(st.text(min_size=1), st.integers(1, 1 << 40)))
def test_depths_file_written_is_read_back(depths: dict[str, int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "depths.toml"
        write_depths(file, depths, ["some program", "some goal"])
        assert read_depths(file) == depths
        assert file.read_text("utf-8").startswith("# some program\n# some goal\n\n[depths]\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[depths]\n'a.0' = 0", "a.0 is 0: expected a number of slots"),
        ("[depths]\n'a.0' = true", "a.0 is True: expected a number of slots"),
        ("[depths]\n'a.0' = '2'", "a.0 is '2': expected a number of slots"),
        ("[depth]\n'a.0' = 2", r"found depth: expected one table, \[depths\]"),
        ("depths = 2", "found depths: expected one table"),
        ("", "found nothing: expected one table"),
        ("[depths", r"not a TOML file: Expected '\]'"),
    ],
)
def test_depths_file_with_other_content_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "depths.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        read_depths(file)
    with pytest.raises(ConfigurationError, match="expected a file with"):
        read_depths(tmp_path / "none.toml")
    with pytest.raises(OSError, match="No such file or directory"):
        write_depths(tmp_path / "none" / "depths.toml", {}, [])

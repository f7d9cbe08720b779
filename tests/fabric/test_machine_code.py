"""Compiled loops equal the loops in Python, are compiled once, and are then linked from files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.timing.engine import machine_code
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters

_ROOT = Path(__file__).parents[2]

_SCRIPT = """
import sys
from fabric.timing.memories.flat import advance
from fabric.timing.engine.machine_code import keeps_code
advance.link()
print("numba" in sys.modules, keeps_code())
"""


@MachineCode
def folded(start: int, values: Counters, stride: int, sums: Counters) -> tuple[int, int]:
    total = start
    count = 0
    place = 0
    while place < values.size:
        total += values[place]
        sums[count] = total
        count += 1
        place += stride
    return total, count


@MachineCode
def allocating(value: int) -> tuple[int]:
    return (int(np.arange(value)[value // 2]),)


def _linked(cache: Path) -> str:
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(cache), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        cwd=_ROOT,
        env=environment,
        timeout=120,
    )
    return done.stdout.strip()


class TestMachineCode:
    @given(
        st.integers(-(2**40), 2**40),
        st.lists(st.integers(-(2**40), 2**40), max_size=30),
        st.integers(1, 5),
    )
    def test_machine_code_equals_the_function(
        self, start: int, values: list[int], stride: int
    ) -> None:
        array = np.array(values, np.int64)
        here, there = np.zeros((2, len(values)), np.int64)

        assert folded.function(start, array, stride, here) == folded.over(array, there)(
            start, stride
        )
        assert here.tolist() == there.tolist()

    def test_function_that_allocates_is_refused(self) -> None:
        with pytest.raises(AssertionError, match="allocating raises or allocates: it needs"):
            allocating.link()

    @pytest.mark.deep
    def test_next_process_links_kept_code(self, tmp_path: Path) -> None:
        assert "True True" == _linked(tmp_path)
        assert "False None" == _linked(tmp_path)
        (kept,) = tmp_path.rglob("*.o")
        kept.write_bytes(kept.read_bytes()[:-1])
        assert "True True" == _linked(tmp_path)
        assert "False None" == _linked(tmp_path)

    @pytest.mark.deep
    def test_process_compiles_if_it_cannot_write(self, tmp_path: Path) -> None:
        file = tmp_path / "no folder"
        file.touch()
        assert ["True False"] * 2 == [_linked(file), _linked(file)]

    def test_without_a_home_it_is_compiled_and_not_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def nobody(_: type[Path]) -> Path:
            raise RuntimeError("Could not determine home directory.")

        file = tmp_path / "no folder"
        file.touch()
        monkeypatch.setattr(Path, "home", classmethod(nobody))
        monkeypatch.setattr(sys, "pycache_prefix", str(file))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(machine_code, "_kept_compiled", [])

        assert MachineCode(folded.function).link() != 0
        assert machine_code.keeps_code() is False

"""What the page of ``trace report`` has inside, letter for letter: a person has read these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fabric import Program
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.selection import TraceOptions
from operators import Consumer, LinearOffChipLoad, LinearOffChipStore, Map, Mul, SiLU
from tests.deadlock.cases import CASES
from tests.fabric.trace.page_data import page_data, told
from tests.fabric.trace.recording import record


def loads() -> Program:
    """Two streams from the HBM of unequal tiles, a product, and a store."""
    x = np.ones((32, 64), np.float32)
    with Program("loads") as wired:
        left = Map(SiLU())(LinearOffChipLoad(x, (16, 64))())
        right = LinearOffChipLoad(x, (16, 64))()
        LinearOffChipStore("y")(Map(Mul())(left, right))
    return wired


def lanes() -> Program:
    """So many lanes that the alike are drawn as one."""
    x = np.ones((1, 16), np.float32)
    with Program("lanes", channel_depth=1) as wired:
        for _ in range(21):
            Consumer()(Map(SiLU())(LinearOffChipLoad(x, (1, 16))()))
    return wired


@pytest.mark.parametrize(
    ("name", "build", "window"),
    [
        ("loads", loads, None),
        ("loads_from_40", loads, (40, 90)),
        ("lanes", lanes, None),
        ("pack_rows", CASES["pack_rows"].build, None),
    ],
)
def test_golden(
    name: str,
    build: Callable[[], Program],
    window: tuple[int, int] | None,
    tmp_path: Path,
    golden: Callable[[str, str], None],
) -> None:
    """Loads and stores, a part of a run, alike units drawn as one, and a deadlock."""
    options = TraceOptions() if window is None else TraceOptions(window=window)
    _, trace = record(build(), tmp_path, options)
    write_page(trace, tmp_path / "run.html")

    data = page_data((tmp_path / "run.html").read_text(encoding="utf-8"))
    golden(f"{name}.txt", "".join(f"{line}\n" for line in told(data)))

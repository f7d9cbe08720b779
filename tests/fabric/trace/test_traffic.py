from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabric import Program
from operators import Consumer, LinearOffChipLoad
from tests.fabric.trace.recording import record

_SHORT, _TILE = 50, (16, 64)


def _loads(*tiles: int) -> Program:
    with Program("loads", mode="timing") as program:
        for number, count in enumerate(tiles):
            rows = np.zeros((count * _TILE[0], _TILE[1]), np.float32)
            Consumer()(LinearOffChipLoad(rows, tile=_TILE, name=f"load_{number}")())
    return program


def _sentences(tiles: tuple[int, ...], folder: Path) -> tuple[str, ...]:
    return record(_loads(*tiles), folder)[1].stalls().traffic


def test_end_in_which_one_unit_loads_is_named(tmp_path: Path) -> None:
    tiles = (*[_SHORT] * 9, 2 * _SHORT)
    _, end = _sentences(tiles, tmp_path)
    together = record(_loads(*[_SHORT] * 10), tmp_path)[0].cycles or 0
    cycles = record(_loads(*tiles), tmp_path)[0].cycles or 0
    alone = record(_loads(_SHORT), tmp_path)[0]
    rate = (alone.hbm_bytes_moved or 0) / (alone.cycles or 1)
    words = end.split()

    # The beginning of the slow end is a multiple of 1/200 of the run.
    stretch = -(-cycles // 200)
    assert abs(int(words[2].replace(",", "")) - (cycles - together)) <= 2 * stretch
    assert abs(int(words[words.index("bytes") - 1]) - rate) <= 1
    assert " for 1 unit (load_9) through ports of 64; " in end


@pytest.mark.parametrize(
    "tiles",
    [
        pytest.param((50,) * 10, id="all end together"),
        pytest.param((200,) * 9 + (201,), id="an end of less than 2 %"),
        pytest.param((100, 100, 130), id="a body below a quarter of the peak"),
        pytest.param((50,) * 5 + (100,) * 5, id="an end of half the rate"),
    ],
)
def test_run_without_another_end_has_none(tiles: tuple[int, ...], tmp_path: Path) -> None:
    assert 1 == len(_sentences(tiles, tmp_path))

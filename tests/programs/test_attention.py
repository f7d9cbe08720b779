from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Report, simulate
from tests.profiles import crossed, spread
from tests.programs.loading import program

STRATEGIES = ("coarse", "interleaved", "dynamic")

LENGTHS = {
    "one request": [5],
    "fewer requests than regions": [3, 100],
    "new tokens in new tiles": [0, 32, 64, 31, 33, 0, 96],
    "more than a block of 16": [7 * n % 90 for n in range(18)],
}


def lengths(folder: Path, values: Any) -> Path:
    file = folder / "lengths.npy"
    np.save(file, np.array(values))
    return file


def run(file: Path, strategy: str, mode: str = "functional", **parameters: Any) -> Report:
    return simulate(program("attention", strategy=strategy, kv=file, **parameters), mode=mode)


@pytest.mark.parametrize(("values", "strategy"), crossed([*LENGTHS], STRATEGIES, 1))
def test_attention_is_verified_in_the_cycles_of_timing_mode(
    tmp_path: Path, strategy: str, values: str
) -> None:
    file = lengths(tmp_path, LENGTHS[values])
    functional = run(file, strategy)
    timing = run(file, strategy, "timing")

    assert ("completed", True, ()) == (
        functional.status,
        functional.verified,
        functional.warnings,
    )
    assert (timing.cycles, timing.units) == (functional.cycles, functional.units)
    assert timing.channels_counters == functional.channels_counters


@pytest.mark.parametrize("strategy", spread(STRATEGIES, 1))
def test_attention_of_other_sizes_is_verified(tmp_path: Path, strategy: str) -> None:
    file = lengths(tmp_path, [40, 3, 17, 9, 25])

    assert run(file, strategy, tile_n=8, channel_depth=4, regions=3).verified is True
    assert run(file, strategy, heads=3, head_dim=20).verified is True
    assert run(file, strategy, tile_n=5, regions=1, requests=4).verified is True

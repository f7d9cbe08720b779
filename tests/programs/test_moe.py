from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Report, simulate
from fabric.shell.cli import main
from tests.programs.loading import program

FILE = Path(__file__).parents[2] / "programs" / "moe.py"


def run(mode: str = "functional", **parameters: Any) -> Report:
    return simulate(program("moe", model="tiny", **{"batch": 24, **parameters}), mode=mode)


def test_moe_draws_the_weights_of_used_experts_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[tuple[int, ...]] = []
    generator = np.random.default_rng

    def counted(seed: tuple[int, ...]) -> np.random.Generator:
        drawn.append(seed)
        return generator(seed)

    monkeypatch.setattr(np.random, "default_rng", counted)
    report = run(tile_n=8, routing=routing(tmp_path, np.tile([5, 2], (24, 1))))

    assert report.verified is True
    weights = sorted(each for each in drawn if len(each) == 4)
    assert [(0, 1, part, expert) for part in range(3) for expert in (2, 5)] == weights


@pytest.mark.deep
def test_moe_remedy_of_a_deadlock_completes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_it = ["run", str(FILE), "-p", "batch=256", "--log-dir", str(tmp_path), "--json"]
    assert 3 == main(run_it)
    every = json.loads(capsys.readouterr().out)["deadlock"]["remedy"]["every_channel"]
    assert {
        "before": 2,
        "after": 4,
        "cycles": 2_127_827,  # an independent simulator gives the same
        "write": "-p channel_depth=4",
    } == every
    assert 0 == main([*run_it, *every["write"].split()])

    assert 2_127_827 == json.loads(capsys.readouterr().out)["cycles"]


def routing(folder: Path, choice: Any) -> Path:
    file = folder / "routing.npz"
    np.savez(file, data=choice)
    return file

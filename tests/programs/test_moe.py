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
        "cycles": 2_127_827,  # also by an independent simulator
        "write": "-p channel_depth=4",
    } == every
    assert 0 == main([*run_it, *every["write"].split()])

    assert 2_127_827 == json.loads(capsys.readouterr().out)["cycles"]


def test_moe_narrow_tiles_in_one_region_deadlock(tmp_path: Path) -> None:
    choice = np.tile([1, 2], (64, 1))
    choice[0] = [0, 1]
    report = run("timing", batch=64, regions=1, tile_n=2, routing=routing(tmp_path, choice))

    assert (report.status, report.exit_status) == ("deadlock", 3)


def test_moe_active_bytes_leave_out_idle_experts(tmp_path: Path) -> None:
    file = routing(tmp_path, np.tile([0, 3], (24, 1)))
    name = "on_chip_requirement_artifact_active_bytes"
    packed = (2 * 8 + 2 * 8) * 64 * 4
    loads = 3 * 64 * 64 * 2
    ends = 64 * 2 + 2 + 2 * 64 * 4

    assert run("timing", regions=2, tile_n=8, routing=file).extra[name] == packed + loads + ends
    assert run("timing", regions=2, tiling="dynamic", routing=file).extra[name] is None


def routing(folder: Path, choice: Any) -> Path:
    file = folder / "routing.npz"
    np.savez(file, data=choice)
    return file

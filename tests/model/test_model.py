"""The fabric's cycles are those of an independent model of the rules, for random settings."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fabric import simulate
from tests.model.settings import DRAWN

SETTINGS = {"moe": 25, "attention": 25, "swiglu": 25}


@pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name, count in SETTINGS.items() for seed in range(count)]
)
def test_cycles(tmp_path: Path, name: str, seed: int) -> None:
    """Program and model take as long, or both deadlock."""
    drawn = DRAWN[name](Random(f"{name} {seed}"))
    expected = drawn.model().run()

    report = simulate(drawn.program(tmp_path), mode="timing")

    assert expected == (report.cycles if report.status == "completed" else None), drawn
    assert report.status == ("deadlock" if expected is None else "completed")

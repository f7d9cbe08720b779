from __future__ import annotations

from pathlib import Path

import pytest

from fabric.explore.serving.question import open_servings
from fabric.explore.serving.run_costs import FabricDescription

PROGRAMS = Path(__file__).parents[2] / "programs"
FILES = sorted((PROGRAMS / "serving").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_configuration_can_be_opened(file: Path) -> None:
    (serving,) = open_servings(file)
    assert serving.name == file.stem
    assert len(serving.requests.read()) > 100


def test_shipped_question_can_be_opened() -> None:
    servings = open_servings(PROGRAMS / "questions/serving.py")
    assert len(servings) == 4
    for serving in servings:
        assert serving.requests.file.exists()
        described = list(serving.designs.values())
        assert all(isinstance(each, FabricDescription) for each in described)
        parameters = [str(vars(each)["parameters"]) for each in described]
        assert len(set(parameters)) == len(parameters) >= 3

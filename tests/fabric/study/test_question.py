from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabric.shell.cli import main

FILE = """
from fabric import Study, grid


class Squares:
    def identity(self, setting):
        return f"squares of {setting}"

    def bounds(self, point):
        if point.setting["x"] == 7:
            raise ValueError("no bound")
        return point.bounds({"square": point.setting["x"] ** 2}, exact=["square"])

    def run(self, point):
        x = point.setting["x"]
        return point.outcome(numbers={"square": x * x, "inverse": 1 / x})


def study():
    return Study(
        asks=Squares(),
        space=grid(x=(0, 1, 2, 3, 7, 9)),
        minimize=("square", "inverse"),
        where=("square < 81",),
    )
"""


def test_question_of_a_file_is_pruned_stored_and_asked_again_if_it_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "squares.py"

    def asked(text: str) -> dict[str, Any]:
        file.write_text(text)
        storage = f"sqlite:///{tmp_path / 'study.db'}"
        assert main(["study", str(file), "--jobs", "1", "--json", "--storage", storage]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    first = asked(FILE)
    points = first["points"]
    statuses = ["error", "completed", "completed", "completed", "refused", "infeasible"]
    assert [each["status"] for each in points] == statuses
    division = FILE[: FILE.index("1 / x")].count("\n") + 1
    fault = f"{file}:{division}: run() of the question raised ZeroDivisionError: division by zero"
    assert points[0]["reason"] == fault
    assert "bounds() of the question raised ValueError: no bound" in points[4]["reason"]
    assert first["pareto"] == [1, 2, 3]
    again = asked(FILE)
    assert again["counts"]["resumed"] == 5
    assert again["points"] == points
    changed = asked(FILE.replace("1 / x", "2 / x"))
    assert changed["counts"]["resumed"] == 0
    assert changed["points"][2]["inverse"] == 1

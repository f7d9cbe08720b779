from __future__ import annotations

from pathlib import Path

import pytest

from fabric import ConfigurationError, Study, grid
from fabric.explore.study.driver import conduct
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.explore.study.result import StudyResult
from fabric.explore.study.session import NoStore
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from fabric.explore.study.workers import LocalWorkers

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


def _conducted(file: Path, store: bool = True) -> StudyResult:
    study = open_study(file, StudyOptions())
    kept = Store(study, file_url(file.with_name("study.db"))) if store else NoStore()
    workers = LocalWorkers(1, None)
    try:
        return conduct(study, workers, kept, lambda _: None)
    finally:
        workers.close()


def test_question_of_a_file_is_pruned_stored_and_asked_again_if_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "squares.py"
    file.write_text(FILE)
    first = _conducted(file)
    statuses = [each.status for each in first.outcomes]
    assert statuses == ["error", "completed", "completed", "completed", "refused", "infeasible"]
    zero, *_, seven, _ = (each.reason for each in first.outcomes)
    lines = FILE.splitlines()
    division = next(number for number, line in enumerate(lines, 1) if "1 / x" in line)
    assert zero == (
        f"{file}:{division}: run() of the question raised ZeroDivisionError: division by zero"
    )
    assert seven is not None
    assert "bounds() of the question raised ValueError: no bound" in seven
    assert first.front == (1, 2, 3)
    again = _conducted(file)
    assert again.resumed == 5
    assert again.outcomes == first.outcomes
    file.write_text(FILE.replace("1 / x", "2 / x"))
    changed = _conducted(file)
    assert changed.resumed == 0
    assert changed.value("inverse", x=2) == 1.0


def test_study_without_one_question_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a study needs a program or asks"):
        Study(space=grid(x=(1,)))

from __future__ import annotations

from pathlib import Path

import pytest

from fabric import FabricError, grid
from fabric.explore.study.opening import StudyOptions, open_study

PROGRAM = Path(__file__).parent / "program_of_points.py"

STUDY = f"""\
from pathlib import Path
from fabric import *; from fabric.extend import *
def study():
    return Study(program=Path({str(PROGRAM)!r}), space=grid(tiles=[1, 2]))
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "figure.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_study_file_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    study = open_study(written(tmp_path, STUDY), StudyOptions())
    assert (study.name, study.space, study.objectives) == (
        "figure",
        grid(tiles=[1, 2]),
        ("cycles",),
    )


def test_program_file_is_a_study_of_the_options() -> None:
    study = open_study(
        PROGRAM,
        StudyOptions(
            vary=["tiles=1..3"],
            parameters=["rows=32", "fault=none"],
            minimize=["cycles"],
            where=["flops <= 1e6"],
        ),
    )
    assert study.program == PROGRAM
    assert study.space == grid(tiles=[1, 2, 3])
    assert study.fixed == {"rows": 32, "fault": "none"}
    assert study.minimize == ("cycles",)
    assert [str(each) for each in study.conditions] == ["flops <= 1000000"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import nothing_of_the_kind", "the file raised ModuleNotFoundError"),
        ("def study(:", "not valid Python"),
        (STUDY.replace("return Study", "Study"), "study() returned None: expected a Study"),
        (STUDY.replace("tiles=[1, 2]", "a=[]"), ":4: axis a has no values: expected at least one"),
        (STUDY.replace("def study()", "def study(x)"), "study() missing 1 required positional"),
        (STUDY.replace("    return", "    1 / 0\n    return"), "study() raised ZeroDivisionError"),
        (STUDY.replace("grid(", "gird("), "gird"),
        ("study = 3", "study is 3: expected a function"),
    ],
)
def test_study_file_that_fails_is_refused_at_its_line(
    tmp_path: Path, text: str, answer: str
) -> None:
    with pytest.raises(FabricError) as caught:
        open_study(written(tmp_path, text), StudyOptions())
    assert answer in str(caught.value)
    assert "figure.py" in str(caught.value)


def test_options_beside_a_study_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"defines study\(\): expected a program"):
        open_study(written(tmp_path, STUDY), StudyOptions(vary=["a=1"]))

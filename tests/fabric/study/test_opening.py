"""Files of studies and of programs: what is a study, and what is told of those that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric import FabricError, grid
from fabric.explore.study.opening import Asked, open_study

PROGRAM = Path(__file__).parent / "program_of_points.py"

STUDY = """\
from pathlib import Path
from fabric import *; from fabric.extend import *
def study():
    return Study(program=Path("p.py"), space=grid(a=[1, 2]))
"""


def written(tmp_path: Path, text: str) -> Path:
    """Return a file with ``text``."""
    file = tmp_path / "figure.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_study_file(tmp_path: Path) -> None:
    """A study without a name has its file's."""
    study = open_study(written(tmp_path, STUDY), Asked())
    assert (study.name, study.space, study.objectives) == ("figure", grid(a=[1, 2]), ("cycles",))


def test_program_file() -> None:
    """A program's file is a study of what is varied."""
    study = open_study(
        PROGRAM,
        Asked(
            vary=["tiles=1..3"],
            parameters=["rows=32", "fault=none"],
            minimize=["cycles"],
            where=["flops <= 1e6"],
        ),
    )
    assert study.program == PROGRAM
    assert study.space == grid(tiles=[1, 2, 3])
    assert study.fixed == {"rows": 32, "fault": None}
    assert study.minimize == ("cycles",)
    assert [str(each) for each in study.conditions] == ["flops <= 1000000"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import nothing_of_the_kind", "the file raised ModuleNotFoundError"),
        ("def study(:", "not valid Python"),
        (STUDY.replace("return Study", "Study"), "study() returned None: expected a Study"),
        (STUDY.replace("a=[1, 2]", "a=[]"), ":4: axis a has no values: expected at least one"),
        (STUDY.replace("def study()", "def study(x)"), "study() missing 1 required positional"),
        (STUDY.replace("    return", "    1 / 0\n    return"), "study() raised ZeroDivisionError"),
        (STUDY.replace("grid(", "gird("), "gird"),
        ("study = 3", "study is 3: expected a function"),
    ],
)
def test_study_refused(tmp_path: Path, text: str, answer: str) -> None:
    """A file that fails is told at its line, with what was expected."""
    with pytest.raises(FabricError) as caught:
        open_study(written(tmp_path, text), Asked())
    assert answer in str(caught.value)
    assert "figure.py" in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (Asked(), "expected study() in it, or --vary NAME=VALUE,VALUE beside it"),
        (Asked(vary=["tiles"]), "--vary tiles: expected NAME=VALUE,VALUE"),
        (Asked(vary=["tiles=1"], parameters=["rows"]), "-p rows: expected NAME=VALUE"),
        (Asked(vary=["tiles=1"], parameters=["a=1", "a=2"]), "a is given twice"),
        (Asked(vary=["tiles=1"], parameters=["tiles=2"]), "tiles is varied and fixed"),
        (Asked(vary=["tiles=1"], minimize=["cycle"]), "there is no metric cycle: expected"),
        (Asked(vary=["tiles=1"], where=["cycles"]), "condition 'cycles': expected METRIC"),
    ],
)
def test_program_refused(asked: Asked, answer: str) -> None:
    """What is asked of a program's file is looked at before anything runs."""
    with pytest.raises(FabricError) as caught:
        open_study(PROGRAM, asked)
    assert answer in str(caught.value)


def test_asked_of_a_study(tmp_path: Path) -> None:
    """A study file says itself what varies."""
    with pytest.raises(FabricError, match="is a study: expected --vary"):
        open_study(written(tmp_path, STUDY), Asked(vary=["a=1"]))

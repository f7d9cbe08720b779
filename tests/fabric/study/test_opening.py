"""Files of studies and of programs: what is a study, and what is told of those that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric import ConfigurationError, FabricError, grid
from fabric.explore.study.opening import Asked, open_study, space_of
from fabric.runs.options import Options

PROGRAM = Path(__file__).parent / "program_of_points.py"

STUDY = f"""\
from pathlib import Path
from fabric import *; from fabric.extend import *
def study():
    return Study(program=Path({str(PROGRAM)!r}), space=grid(tiles=[1, 2]))
"""


def written(tmp_path: Path, text: str) -> Path:
    """Return a file with ``text``."""
    file = tmp_path / "figure.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_study_file(tmp_path: Path) -> None:
    """A study without a name has its file's."""
    study = open_study(written(tmp_path, STUDY), Asked())
    assert (study.name, study.space, study.objectives) == (
        "figure",
        grid(tiles=[1, 2]),
        ("cycles",),
    )


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
    assert study.fixed == {"rows": 32, "fault": "none"}
    assert study.minimize == ("cycles",)
    assert [str(each) for each in study.conditions] == ["flops <= 1000000"]


def test_everything_asked(tmp_path: Path) -> None:
    """Inputs, those held out, hardware and options of runs are those that were asked for."""
    hardware = tmp_path / "hardware.toml"
    hardware.touch()
    study = open_study(
        PROGRAM,
        Asked(
            vary=["tiles=1,2"],
            over=["rows=2..8+2"],
            hold_out=2,
            hardware=hardware,
            options=Options(mode="timing", depths={"map.0": 3}, livelock_cycles=77),
            minimize=["mean:cycles", "worst:flops"],
        ),
    )
    assert (study.over, study.hold_out, study.hardware) == (grid(rows=[2, 4, 6, 8]), 2, hardware)
    assert (study.mode, study.depths, study.livelock_cycles) == ("timing", {"map.0": 3}, 77)
    assert (study.minimize, study.name) == (("mean:cycles", "worst:flops"), PROGRAM.stem)
    inputs = open_study(PROGRAM, Asked(over=["rows=2,4"]))
    assert (len(inputs.space), list(inputs.space)) == (1, [{}])


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
        (Asked(vary=["tiles=1"], parameters=["rows=2", "rows=4"]), "rows is given twice"),
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


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..3", (1, 2, 3)),
        ("2..2", (2,)),
        ("-1..1", (-1, 0, 1)),
        ("1..6+2", (1, 3, 5)),
        ("1..7+2", (1, 3, 5, 7)),
        ("3..24*2", (3, 6, 12, 24)),
        ("3..23*2", (3, 6, 12)),
        ("1..2,7", (1, 2, 7)),
        ("True,NONE,x,1.5,1.50,007,1e3", (True, None, "x", 1.5, 7, 1000)),
        ("1..x", ("1..x",)),
    ],
)
def test_values(text: str, values: tuple[object, ...]) -> None:
    """Lists, ranges with their ends, steps and factors."""
    (found,) = space_of([f"a={text}"]).values.values()
    assert [(type(each), each) for each in found] == [(type(each), each) for each in values]


def test_values_together() -> None:
    """Names that vary together, and all of them with every value of a further axis."""
    assert [*space_of(["a:b=1:x,2:y", "c=7,8"])] == [
        {"a": 1, "b": "x", "c": 7},
        {"a": 1, "b": "x", "c": 8},
        {"a": 2, "b": "y", "c": 7},
        {"a": 2, "b": "y", "c": 8},
    ]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a=", "--over a=: expected NAME=VALUE,VALUE"),
        ("=1", "--over =1: expected NAME=VALUE,VALUE"),
        ("a=3..1", "3..1 has no values: expected FIRST..LAST with FIRST <= LAST"),
        ("a=1..3+0", "1..3+0 does not get on: expected a step of at least 1"),
        ("a=1..3*1", "geometric(1, 3, 1): expected 1 <= first <= last and a factor of at least 2"),
        ("a=0..3*2", "geometric(0, 3, 2): expected 1 <= first <= last and a factor of at least 2"),
        ("a=3..2*2", "geometric(3, 2, 2): expected 1 <= first <= last and a factor of at least 2"),
        ("a:b=1:2,3", "3 has 1 value: expected 2"),
        ("a:b=1:2:3", "1:2:3 has 3 values: expected 2"),
        ("a:a=1:2", "a:a has a name twice: expected each name once"),
        ("a=1..2.5", "1..2.5: expected a range of integers"),
    ],
)
def test_no_values(text: str, answer: str) -> None:
    """What was typed is told."""
    with pytest.raises(ConfigurationError) as caught:
        space_of([text], "--over")
    assert caught.value.message.startswith("--over ")
    assert answer in caught.value.message

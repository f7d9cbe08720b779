from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from fabric import Outcome, Study, StudySession, grid, run_point
from fabric.explore.study.evaluation import Job, known_before
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from fabric.explore.study.workers import LocalWorkers
from tests.fabric.study.test_command import study

POINTS = Path(__file__).parent / "program_of_points.py"

PROGRAM = """\
from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
import sizes

def late():
    import numbers_of
    return numbers_of.LATE

def build(times: int = 1) -> Program:
    with Program("sized") as program:
        rows = sizes.ROWS * times
        LinearOffChipStore("y")(LinearOffChipLoad(Tensor((rows, 16)), tile=(rows, 16))())
    program.extra["late"] = late
    program.extra["rows"] = lambda: rows
    return program
"""

STUDY = """\
from pathlib import Path
from fabric import Study, StudyTable, grid
import sizes

def rows(findings):
    import numbers_of
    yield (numbers_of.LATE,)

def study() -> Study:
    return Study(
        program=Path(__file__).parent / "program.py",
        space=grid(times=(1, 2)),
        minimize=("cycles",),
        where=(f"extra.rows <= {sizes.ROWS}",),
        tables=(StudyTable(title="late", columns=("late",), rows=rows),),
    )
"""


SIZES = {"one": (16, 901), "two": (48, 902)}


def _written(folder: Path, rows: int, late: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "sizes.py").write_text(f"ROWS = {rows}\n", encoding="utf-8")
    (folder / "numbers_of.py").write_text(f"LATE = {late}\n", encoding="utf-8")
    path = folder / f"{folder.name}.py"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.mark.deep
def test_studies_with_helpers_of_one_name_use_their_own(tmp_path: Path) -> None:
    files = [str(_written(tmp_path / name, *sizes)) for name, sizes in SIZES.items()]
    done = study(*files, "--json", "--jobs", "1", "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    found = {each["study"]: each for each in json.loads(done.stdout)["studies"]}
    for name, (rows, late) in SIZES.items():
        point = found[name]["points"][0]
        assert (point["extra.rows"], point["extra.late"]) == (rows, late)
        assert f">{late}<" in (tmp_path / "out" / name / "index.html").read_text()
    alone = json.loads(study(files[1], "--json", "--jobs", "1").stdout)
    assert alone["points"][0]["cycles"] == found["two"]["points"][0]["cycles"]


def _study(folder: Path) -> Study:
    return Study(program=folder / "program.py", space=grid(times=(1,)), name="sized")


def _ran(one: Study) -> Outcome:
    return run_point(one, one.point(0))


@pytest.mark.parametrize("helper", ["sizes", "numbers_of"])
def test_edited_helper_invalidates_kept_points(tmp_path: Path, helper: str) -> None:
    _written(tmp_path / "one", 16, 901)
    one, url = _study(tmp_path / "one"), file_url(tmp_path / "study.db")
    store = Store(one, url)
    before = _ran(one)
    path = tmp_path / "one" / f"{helper}.py"
    path.write_text(path.read_text().replace("1", "2"), encoding="utf-8")
    store.keep(before)
    again = Store(one, url)
    assert again.known() == []
    assert again.ignored == 1
    after = _ran(one)
    name = {"sizes": "extra.rows", "numbers_of": "extra.late"}[helper]
    changed = {"sizes": (16, 26), "numbers_of": (901, 902)}[helper]
    assert (before.numbers[name], after.numbers[name]) == changed
    again.keep(after)
    assert Store(one, url).known() == [after]
    moved = Path(shutil.copytree(tmp_path / "one", tmp_path / "moved"))
    assert Store(_study(moved), url).known() == [after]
    (moved / helper).mkdir()
    (moved / helper / "__init__.py").write_text(path.read_text(), encoding="utf-8")
    assert Store(_study(moved), url).known() == [after]  # the same source in another place
    (moved / "operators.py").write_text("", encoding="utf-8")
    (moved / "fractions.py").write_text("", encoding="utf-8")
    assert Store(_study(moved), url).known() == [after]
    (moved / helper / "__init__.py").write_text("", encoding="utf-8")
    assert Store(_study(moved), url).known() == []


def test_workers_report_the_files_that_they_executed(tmp_path: Path) -> None:
    _written(tmp_path / "one", 16, 901)
    one = _study(tmp_path / "one")
    job = Job.of(one, one.point(0))
    workers = LocalWorkers(1, None)
    try:
        before, found = workers.look(job).result(), workers.run(job).result()
    finally:
        workers.close()
    late = tmp_path / "one" / "numbers_of.py"
    digest = sha256(late.read_bytes()).hexdigest()
    assert found.executed == {**before.executed, "numbers_of": digest}
    assert before.executed == known_before(job).executed
    session = StudySession(replace(one, minimize=("cycles",)))
    assert session.ask() is not None
    timeout = Outcome(index=0, setting=one.space[0], status="timeout", wall_seconds=1.0)
    assert session.tell(timeout).executed == before.executed

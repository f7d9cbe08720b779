from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Outcome, Study, StudySession, grid, run_point
from fabric.explore.study.session import BaseStore
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from fabric.timing.machine.terminations import Terminations
from tests.profiles import examples

PROGRAM = Path(__file__).parent / "program_of_fronts.py"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabric.explore.study.storage._BUSY_SECONDS", 0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAM, tmp_path / "program.py"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return file_url(tmp_path / "study.db")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, bytes]:
    path = tmp_path_factory.mktemp("kept") / "study.db"
    study = _study(space=grid(rows=(8, 24)), minimize=())
    _worked(study, Store(study, file_url(path)))
    return study, path.read_bytes()


def _study(program: Path = PROGRAM, **changes: Any) -> Study:
    study = Study(
        program=program,
        space=grid(rows=(8, 24, 96), flops_per_cycle=(16, 4096)),
        minimize=("cycles", "on_chip_requirement_bytes"),
        name="tiles",
    )
    return replace(study, **changes)


def _worked(study: Study, store: BaseStore, most: int = 1000) -> tuple[StudySession, list[int]]:
    session = StudySession(study, store)
    ran: list[int] = []
    while len(ran) < most and (point := session.ask()) is not None:
        session.tell(run_point(study, point))
        ran.append(point.index)
    return session, ran


def test_resumed_session_runs_nothing_twice(url: str) -> None:
    study = _study()
    first, began = _worked(study, Store(study, url), 1)
    second, ended = _worked(study, Store(study, url))
    third, nothing = _worked(study, Store(study, url))
    alone, _ = _worked(study, BaseStore())
    assert len(began) == 1
    assert ended
    assert not set(began) & set(ended)
    assert nothing == []
    assert second.resumed == 1
    assert third.outcomes == second.outcomes
    assert third.front() == alone.front()
    assert first.outcomes.items() <= second.outcomes.items()


def test_outcomes_of_every_status_are_restored(url: str) -> None:
    study = _study(
        space=grid(rows=(8, 96), trouble=("no", "stuck", "refused")),
        minimize=(),
        where=("on_chip_requirement_bytes <= 8e3",),
    )
    session, _ = _worked(study, Store(study, url))
    stored = {each.index: each for each in Store(study, url).known()}
    assert stored == session.outcomes
    assert {each.status for each in stored.values()} == {
        "completed",
        "deadlock",
        "refused",
        "infeasible",
    }


def test_larger_space_runs_only_new_points(url: str) -> None:
    small = _study(space=grid(rows=(24,)), minimize=())
    _worked(small, Store(small, url))
    large = _study(space=grid(rows=(8, 24), times=(1, 2)), minimize=(), fixed={})
    _, ran = _worked(large, Store(large, url))
    assert ran == [0, 1, 2, 3]  # the small study did not state times, so its identity differs
    larger = _study(space=grid(times=(1, 2), rows=(48, 8, 24)), minimize=())
    session, ran = _worked(larger, Store(larger, url))
    assert [larger.space[index]["rows"] for index in ran] == [48, 48]
    assert session.outcomes[1].setting == {"times": 1, "rows": 8}


def test_points_with_fewer_names_are_not_reported_as_unused(url: str) -> None:
    study = _study(space=grid(rows=(24,)) + grid(rows=(24,), times=(2,)), minimize=(), fixed={})
    _worked(study, Store(study, url))
    store = Store(study, url)

    assert [each.index for each in store.known()] == [0, 1]
    assert store.ignored == 0


def test_other_metrics_reuse_runs_but_no_proofs(url: str) -> None:
    study = _study()
    session, ran = _worked(study, Store(study, url))
    assert any(each.pruned_by is not None for each in session.outcomes.values())
    other = replace(study, minimize=("allocated_flops_per_cycle",))
    store = Store(other, url)
    assert {each.index for each in store.known()} == set(ran)
    again, _ = _worked(other, store)
    alone, _ = _worked(other, BaseStore())
    assert again.front() == alone.front()


def test_changed_program_runs_again_and_is_reported(program: Path, url: str) -> None:
    (program.parent / "beside_points.py").write_text("TIMES = 1\n")
    program.write_text(
        program.read_text().replace("from fabric", "import beside_points\nfrom fabric", 1)
    )
    study = _study(program, minimize=())
    _worked(study, Store(study, url))
    assert len(Store(study, url).known()) == 6
    (program.parent / "beside_points.py").write_text("TIMES = 2 - 1\n")
    store = Store(study, url)
    assert store.known() == []
    assert store.ignored == 6
    assert store.ignored_note() == (
        f"not used: 6 points in {url}, from another program, hardware or version of the fabric"
    )


def test_file_changed_during_a_study_invalidates_its_points(
    program: Path, url: str, tmp_path: Path
) -> None:
    hardware, data = tmp_path / "wide.toml", tmp_path / "data"
    hardware.write_text("")
    data.write_text("1")
    program.write_text(
        program.read_text().replace('trouble: str = "no"', 'trouble: str = "no", data: str = ""')
    )
    study = _study(program, minimize=(), hardware=hardware, fixed={"data": str(data)})
    found = run_point(study, study.point(0))
    for path in (hardware, data):
        store = Store(study, url)
        path.write_text(path.read_text() + "\n")
        store.keep(found)
        assert Store(study, url).known() == []
    store = Store(study, url)
    store.keep(found)
    assert Store(study, url).known() == [found]


def test_lost_points_and_late_ones_with_more_time_run_again(url: str) -> None:
    study = _study()
    store = Store(study, url)
    setting = study.space[0]
    store.keep(Outcome(index=0, setting=setting, status="lost", reason="killed by SIGKILL"))
    late = Outcome(
        index=1,
        setting=study.space[1],
        status="timeout",
        reason="too long",
        wall_seconds=2.0,
        executed=_executed(study),
    )
    store.keep(late)
    assert Store(study, url, timeout_seconds=2.0).known() == [late]
    assert Store(study, url, timeout_seconds=3.0).known() == []
    assert Store(study, url).known() == []
    store.keep(replace(late, index=2, setting=study.space[2], executed={}))
    stored = Store(study, url, timeout_seconds=2.0).known()
    assert stored == [late]


@pytest.mark.deep
def test_two_processes_share_one_study(url: str) -> None:
    command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json"]
    command += ["--vary", "rows=8,16,24,32,48,96", "--vary", "times=1..4", "--jobs", "1"]
    command += ["--minimize", "cycles", "--storage", url]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    study = _study(
        space=grid(rows=(8, 16, 24, 32, 48, 96), times=(1, 2, 3, 4)), minimize=("cycles",)
    )
    study = replace(study, name="program_of_fronts")
    stored = Store(study, url).known()
    assert {each.index for each in stored} == set(range(24))
    session = StudySession(study, Store(study, url))
    assert session.ask() is None
    alone, _ = _worked(study, BaseStore())
    assert session.front() == alone.front()


def test_database_of_other_tables_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table customers (name text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigurationError) as refused:
        Store(_study(), file_url(path))
    assert refused.value.message == (
        f"storage {file_url(path)} is a database of something else, with tables customers: "
        "expected an empty one, or one of a study"
    )
    assert path.read_bytes() == before


@pytest.mark.deep
def test_locked_storage_is_an_error_and_recovers(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabric.explore.study.storage._BUSY_SECONDS", 0)
    study = _study(minimize=())
    store = Store(study, url)
    found = run_point(study, study.point(0))
    path = url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin exclusive")
        with pytest.raises(ConfigurationError, match=r"cannot be opened \(database is locked\)"):
            Store(study, url)
        with pytest.raises(OSError, match="database is locked"):
            store.keep(found)
        connection.execute("rollback")
    store.keep(found)
    assert Store(study, url).known() == [found]


@examples(quick=15)
@given(st.data())
def test_damaged_storage_is_used_or_refused(kept: tuple[Study, bytes], data: st.DataObject) -> None:
    study, whole = kept
    damaged = bytearray(whole)
    words = re.finditer(rb'"(identity|whole|drawn|status|index|setting|outcome)"', whole)
    where = data.draw(
        st.one_of(
            st.sampled_from([each.start(1) for each in words]),
            st.integers(100, len(whole) - 1),
        )
    )
    content = data.draw(st.one_of(st.just(b"?"), st.binary(min_size=1, max_size=64)))
    damaged[where : where + len(content)] = content
    del damaged[data.draw(st.one_of(st.just(len(whole)), st.integers(1, len(whole)))) :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.db")
        path.write_bytes(damaged)
        error_text = str(path)
        try:
            store = Store(study, file_url(path))
            store.known(), store.news()
        except (ConfigurationError, OSError) as error:
            error_text = str(error)
        assert str(path) in error_text


@pytest.mark.deep
def test_full_disk_ends_the_command_and_keeps_the_storage(tmp_path: Path, url: str) -> None:
    Store(replace(_study(), name="program_of_fronts"), url)
    most = (tmp_path / "study.db").stat().st_size + 4096
    command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json"]
    command += ["--vary", "rows=8,16,24,32,48,96", "--storage", url, "--jobs", "1"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    # Otherwise Python would write a truncated compiled module, and read it in the next run.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=limit,
    )
    assert done.returncode == 4, done.stderr
    assert done.stderr == f"fabric: storage {url}: disk I/O error\n"
    assert Store(_study(), url).known() == []


def _executed(study: Study) -> dict[str, str | None]:
    return {"": sha256((study.program or Path()).read_bytes()).hexdigest()}


@pytest.mark.deep
@pytest.mark.usefixtures("soon")
def test_storage_interrupted_by_a_signal_can_be_written(url: str) -> None:
    study = _study(minimize=())
    number, at = 0, 1

    def count(*_: object) -> None:
        nonlocal number
        number += 1
        if number == at:
            signal.raise_signal(signal.SIGTERM)

    reached = True
    while reached:
        store = Store(study, f"{url}-{at}")
        point = study.point(0)
        other = Store(study, f"{url}-{at}")
        other.keep(run_point(study, study.point(1)))
        number = 0
        with Terminations().handled():
            sqlalchemy.event.listen(sqlalchemy.Engine, "after_cursor_execute", count)
            try:
                store.news()
                store.claim(point, insist=False)
                store.keep(run_point(study, point))
            except KeyboardInterrupt as error:
                interrupted = error
                store.keep(run_point(study, study.point(2)))
                assert {each.index for each in Store(study, f"{url}-{at}").known()} >= {1, 2}
                del interrupted
            finally:
                sqlalchemy.event.remove(sqlalchemy.Engine, "after_cursor_execute", count)
        reached = number >= at
        at += 5
    assert at > 10

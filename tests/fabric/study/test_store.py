"""Optuna's storage as a study's memory: what is found again, what is not, and what is refused."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

# Any: fields of a study.
from typing import Any, Final

import optuna
import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Outcome, Study, StudySession, grid, run_point, zipped
from fabric.explore.study.storage import file_url, open_storage
from fabric.explore.study.store import Store
from fabric.timing.machine.terminations import Terminations
from tests.profiles import examples, spread

PROGRAM = Path(__file__).parent / "program_of_fronts.py"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a write wait for others for no time, rather than for a minute."""
    monkeypatch.setattr("fabric.explore.study.storage._BUSY_SECONDS", 0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a copy of the program, which may be changed."""
    return Path(shutil.copy(PROGRAM, tmp_path / "program.py"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a storage that there is not yet."""
    return file_url(tmp_path / "study.db")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, bytes]:
    """Return a study of two points, and the file that has both."""
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


def _worked(study: Study, store: Store, most: int = 1000) -> tuple[StudySession, list[int]]:
    """Run what a session hands out, at most so many, and return which points that were."""
    session = StudySession(study, store)
    ran: list[int] = []
    while len(ran) < most and (point := session.ask()) is not None:
        session.tell(run_point(study, point))
        ran.append(point.index)
    return session, ran


class TestGoingOn:
    def test_nothing_is_run_twice(self, url: str) -> None:
        """A session that ended early, one that ends, and one that has nothing to do."""
        study = _study()
        first, began = _worked(study, Store(study, url), 1)
        second, ended = _worked(study, Store(study, url))
        third, nothing = _worked(study, Store(study, url))
        alone, _ = _worked(study, Store(study))
        assert len(began) == 1
        assert ended
        assert not set(began) & set(ended)
        assert nothing == []
        assert second.resumed == 1
        assert third.outcomes == second.outcomes
        assert third.front() == alone.front()
        assert first.outcomes.items() <= second.outcomes.items()

    def test_outcomes_come_back_as_they_were(self, url: str) -> None:
        """Numbers, bounds, reasons: those of every status."""
        study = _study(
            space=grid(rows=(8, 96), trouble=("no", "stuck", "refused")),
            minimize=(),
            where=("on_chip_requirement_bytes <= 8e3",),
        )
        session, _ = _worked(study, Store(study, url))
        known = {each.index: each for each in Store(study, url).known()}
        assert known == session.outcomes
        assert {each.status for each in known.values()} == {
            "completed",
            "deadlock",
            "refused",
            "infeasible",
        }

    def test_a_larger_space_runs_what_is_new(self, url: str) -> None:
        """Points are known by their settings, not by where they stand."""
        small = _study(space=grid(rows=(24,)), minimize=())
        _worked(small, Store(small, url))
        large = _study(space=grid(rows=(8, 24), times=(1, 2)), minimize=(), fixed={})
        _, ran = _worked(large, Store(large, url))
        assert ran == [0, 1, 2, 3]  # times was not stated before: another identity
        larger = _study(space=grid(times=(1, 2), rows=(48, 8, 24)), minimize=())
        session, ran = _worked(larger, Store(larger, url))
        assert [larger.space[index]["rows"] for index in ran] == [48, 48]
        assert session.outcomes[1].setting == {"times": 1, "rows": 8}

    def test_what_is_fixed_and_what_varies_may_change_places(self, url: str) -> None:
        """The whole setting counts."""
        one = _study(space=grid(rows=(8, 24)), fixed={"times": 2}, minimize=())
        _worked(one, Store(one, url))
        other = _study(space=grid(times=(1, 2)), fixed={"rows": 24}, minimize=())
        _, ran = _worked(other, Store(other, url))
        assert [other.space[index] for index in ran] == [{"times": 1}]

    def test_other_metrics_use_the_runs_and_none_of_the_proofs(self, url: str) -> None:
        """A proof holds for the metrics and conditions that it was made for."""
        study = _study()
        session, ran = _worked(study, Store(study, url))
        assert any(each.pruned_by is not None for each in session.outcomes.values())
        other = replace(study, minimize=("allocated_flops_per_cycle",))
        store = Store(other, url)
        assert {each.index for each in store.known()} == set(ran)
        again, _ = _worked(other, store)
        alone, _ = _worked(other, Store(other))
        assert again.front() == alone.front()
        names = set(optuna.study.get_all_study_names(url))
        assert names == {"tiles", "tiles-2"}

    def test_two_studies_share_one_storage(self, url: str) -> None:
        """Each has its own trials; a point of both runs once."""
        one = _study(space=grid(rows=(8, 24)), minimize=(), name="one")
        other = _study(space=grid(rows=(24, 96)), minimize=(), name="other")
        _worked(one, Store(one, url))
        _, ran = _worked(other, Store(other, url))
        assert [other.space[index] for index in ran] == [{"rows": 96}]

    def test_a_changed_program_runs_again_and_is_told(self, program: Path, url: str) -> None:
        """Also where only a module has changed that it imports."""
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
        assert store.told_of_ignored() == (
            f"6 points are in {url} as another program, hardware or version of the fabric had it: "
            "not used"
        )

    def test_a_file_that_a_parameter_names_is_part_of_the_point(
        self, program: Path, url: str, tmp_path: Path
    ) -> None:
        """Its content is, its path is not."""
        data = tmp_path / "data"
        data.write_text("1")
        moved = tmp_path / "moved"
        moved.write_text("1")
        program.write_text(
            program.read_text().replace(
                'trouble: str = "no"', 'trouble: str = "no", data: str = ""'
            )
        )
        study = _study(program, minimize=(), fixed={"data": str(data)})
        _worked(study, Store(study, url))
        assert len(Store(replace(study, fixed={"data": str(moved)}), url).known()) == 6
        data.write_text("2")
        assert Store(study, url).known() == []

    def test_files_that_change_while_a_study_is_under_way(
        self, program: Path, url: str, tmp_path: Path
    ) -> None:
        """Nobody knows which ones a run has read: its point runs again."""
        hardware, data = tmp_path / "wide.toml", tmp_path / "data"
        hardware.write_text("")
        data.write_text("1")
        program.write_text(
            program.read_text().replace(
                'trouble: str = "no"', 'trouble: str = "no", data: str = ""'
            )
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

    def test_a_proof_goes_with_its_run(self, url: str) -> None:
        """Where the run that dominates is not known any more, the point is looked at again."""
        study = _study()
        store = Store(study, url)
        store.keep(_proved(study, 3, by=0))
        assert Store(study, url).known() == []
        store.keep(run_point(study, study.point(0)))
        assert [each.index for each in Store(study, url).known()] == [3, 0]

    def test_a_run_is_more_than_a_proof(self, url: str) -> None:
        """Of another study, whether that is looked at before or after."""
        study = _study()
        store = Store(study, url)
        store.keep(run_point(study, study.point(0)))
        for name, index in (("a", 3), ("z", 4)):
            other = _study(minimize=("flops",), name=name)
            Store(other, url).keep(run_point(other, other.point(index)))
            store.keep(_proved(study, index, by=0))
        known = {each.index: each.status for each in Store(study, url).known()}
        assert known == dict.fromkeys((0, 3, 4), "completed")

    def test_lost_points_are_tried_again_and_late_ones_where_they_get_more_time(
        self, url: str
    ) -> None:
        """Neither says anything about the point."""
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
        known = Store(study, url, timeout_seconds=2.0).known()
        assert known == [late]  # nobody knows what the other one had executed


def test_what_it_is_called() -> None:
    """As the study, in Optuna's dashboard too; one without a name has one there."""
    assert Store(_study()).history.study_name == "tiles"
    assert Store(_study(name="")).history.study_name == "study"


class TestSeveralProcesses:
    def test_a_point_that_another_one_works_on_goes_last(self, url: str) -> None:
        """It is taken when nothing else is left, for the other one may be gone."""
        study = _study(minimize=())
        other, mine = Store(study, url), Store(study, url)
        other._process, mine._process = "elsewhere:1", "here:1"  # type: ignore[misc]
        assert other.claim(study.point(0), insist=False)
        _, ran = _worked(study, mine)
        assert ran == [1, 2, 3, 4, 5, 0]

    @pytest.mark.parametrize(
        ("host", "raised", "first"),
        [
            ("here", None, 1),
            ("here", PermissionError, 1),
            ("here", ProcessLookupError, 0),
            ("elsewhere", ProcessLookupError, 1),
        ],
    )
    def test_a_process_that_is_no_more_works_on_nothing(
        self,
        url: str,
        host: str,
        raised: type[OSError] | None,
        first: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """One of this machine may be looked for; of another machine's nobody knows."""
        asked: list[tuple[int, int]] = []

        def kill(process: int, number: int) -> None:
            asked.append((process, number))
            if raised is not None:
                raise raised

        study = _study(minimize=())
        other = Store(study, url)
        name = socket.gethostname() if host == "here" else "another"
        other._process = f"{name}:77"  # type: ignore[misc]
        assert other.claim(study.point(0), insist=False)
        monkeypatch.setattr(os, "kill", kill)
        assert StudySession(study, Store(study, url)).ask() == study.point(first)
        assert set(asked) == (set() if host == "elsewhere" else {(77, 0)})

    def test_what_another_one_keeps_is_not_run(self, url: str) -> None:
        """It is seen as soon as it is there."""
        study = _study(minimize=())
        mine, other = Store(study, url), Store(study, url)
        other._process = "elsewhere:1"  # type: ignore[misc]
        session = StudySession(study, mine)
        assert session.ask() == study.point(0)
        other.keep(run_point(study, study.point(1)))
        assert session.ask() == study.point(2)
        assert session.outcomes.keys() == {1}
        assert session.resumed == 1

    def test_two_at_once_deal_with_all_points(self, url: str) -> None:
        """Real processes: together they have every point, and the front of one alone."""
        command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json"]
        command += ["--vary", "rows=8,16,24,32,48,96", "--vary", "times=1..4", "--jobs", "1"]
        command += ["--minimize", "cycles", "--storage", url]
        both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [each.wait() for each in both] == [0, 0]
        study = _study(
            space=grid(rows=(8, 16, 24, 32, 48, 96), times=(1, 2, 3, 4)), minimize=("cycles",)
        )
        study = replace(study, name="program_of_fronts")
        known = Store(study, url).known()
        assert {each.index for each in known} == set(range(24))
        session = StudySession(study, Store(study, url))
        assert session.ask() is None
        alone, _ = _worked(study, Store(study))
        assert session.front() == alone.front()


class TestOpenedByOptuna:
    def test_its_best_trials_are_the_front(self, url: str) -> None:
        """With parameters, values and conditions as it has them itself."""
        study = _study(where=("on_chip_requirement_bytes <= 8e3",))
        session, _ = _worked(study, Store(study, url))
        loaded = optuna.load_study(study_name="tiles", storage=url)
        best = {tuple(sorted(each.params.items())) for each in loaded.best_trials}
        front = {tuple(sorted(study.space[index].items())) for index in session.front()}
        assert best == front
        states = {each.state.name for each in loaded.trials}
        assert states == {"COMPLETE", "PRUNED"}
        assert loaded.metric_names == list(study.minimize)

    def test_axes_that_are_zipped_are_one_parameter(self, url: str) -> None:
        """And a sum says which product a point is of."""
        space = zipped(rows=(8, 24), times=(2, 1)) + grid(rows=(96,))
        study = _study(space=space, minimize=())
        _worked(study, Store(study, url))
        trials = optuna.load_study(study_name="tiles", storage=url).trials
        assert [each.params for each in trials] == [
            {"product": 0, "rows:times (0)": "8:2"},
            {"product": 0, "rows:times (0)": "24:1"},
            {"product": 1, "rows (1)": 96},
        ]
        assert len(Store(study, url).known()) == 3


_VALUES: Final = (
    None,
    -1,
    0,
    1 << 62,
    1.5,
    "",
    "x",
    "{}",
    "[1]",
    "NaN",
    "COMPLETE",
    b"\xff",
    "[" * 9999,
)
"""What columns do not have."""


_PARTS: Final = 25
"""One part of these changes is tried by default, all in the deep tests."""


def _changes(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return statements that damage a database, each with its values."""
    asked = "select name from sqlite_master where type = 'table' order by name"
    changes: list[tuple[Any, ...]] = []
    for (table,) in connection.execute(asked).fetchall():
        changes += [(f"delete from {table}",), (f"drop table {table}",)]
        for row in connection.execute(f"pragma table_info({table})"):
            changes += [(f'update {table} set "{row[1]}" = ?', value) for value in _VALUES]
    return changes


class TestRefused:
    def test_a_database_of_something_else(self, tmp_path: Path) -> None:
        """It stays as it is."""
        path = tmp_path / "other.db"
        with sqlite3.connect(path) as connection:
            connection.execute("create table customers (name text)")
        connection.close()
        before = path.read_bytes()
        with pytest.raises(ConfigurationError) as refused:
            Store(_study(), file_url(path))
        assert refused.value.message == (
            f"storage {file_url(path)} is a database of something else, with tables customers: "
            "expected an empty one, or one of Optuna"
        )
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("count", "told"), [(3, "tables t0, t1, t2:"), (4, "tables t0, t1, t2, ...:")]
    )
    def test_many_tables_of_something_else(self, count: int, told: str, tmp_path: Path) -> None:
        """Three are named."""
        path = tmp_path / "other.db"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for number in range(count):
                connection.execute(f"create table t{number} (name text)")
        with pytest.raises(ConfigurationError, match=re.escape(told)):
            Store(_study(), file_url(path))

    def test_another_version(self, tmp_path: Path, url: str) -> None:
        """Optuna's sentence says what to do."""
        Store(_study(), url)
        with sqlite3.connect(tmp_path / "study.db") as connection:
            connection.execute("update alembic_version set version_num = 'v99.0.0.a'")
        connection.close()
        with pytest.raises(ConfigurationError, match="no longer compatible with the table schema"):
            Store(_study(), url)

    def test_a_locked_one(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before it is opened, and while the study is under way; nothing of it is changed."""
        monkeypatch.setattr("fabric.explore.study.storage._BUSY_SECONDS", 0)
        study = _study(minimize=())
        store = Store(study, url)
        found = run_point(study, study.point(0))
        path = url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin exclusive")
            with pytest.raises(
                ConfigurationError, match=r"cannot be opened \(database is locked\)"
            ):
                Store(study, url)
            with pytest.raises(OSError, match="database is locked"):
                store.keep(found)
            connection.execute("rollback")
        store.keep(found)
        assert Store(study, url).known() == [found]

    def test_one_that_may_not_be_written(self, url: str) -> None:
        """What it has is read; what is new is told, and where it could not be kept."""
        study = _study(minimize=())
        Store(study, url).keep(run_point(study, study.point(0)))
        read = url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true"
        store = Store(study, read)
        assert len(store.known()) == 1
        with pytest.raises(OSError, match="attempt to write a readonly database"):
            store.keep(run_point(study, study.point(1)))

    @examples(quick=30)
    @given(st.data())
    def test_a_damaged_one(self, kept: tuple[Study, bytes], data: st.DataObject) -> None:
        """Cut off, overwritten, or with another word: it is used, or told with its path."""
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
            told = str(path)
            try:
                store = Store(study, file_url(path))
                store.known(), store.news()
            except (ConfigurationError, OSError) as error:
                told = str(error)
            assert str(path) in told

    @pytest.mark.parametrize("first", spread(range(_PARTS), 1))
    def test_other_values(self, first: int, kept: tuple[Study, bytes], tmp_path: Path) -> None:
        """A whole database with rows, values or tables that Optuna and we have not written so."""
        study, whole = kept
        path = tmp_path / "study.db"
        path.write_bytes(whole)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            changes = _changes(connection)[first::_PARTS]
        for statement, *values in changes:
            path.write_bytes(whole)
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("pragma ignore_check_constraints = on")
                with contextlib.suppress(sqlite3.IntegrityError):
                    connection.execute(statement, values)
            told = str(path)
            try:
                store = Store(study, file_url(path))
                store.known(), store.news(), store.claim(study.point(0), insist=False)
            except (ConfigurationError, OSError) as error:
                told = str(error)
            assert str(path) in told, statement

    @pytest.mark.parametrize("kind", ["pipe", "itself", "zeros"])
    def test_no_file(self, kind: str, tmp_path: Path) -> None:
        """It is not waited for."""
        path = tmp_path / "study.db"
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(path if kind == "itself" else "/dev/zero")
        with pytest.raises(ConfigurationError, match="cannot be opened"):
            Store(_study(), file_url(path))

    def test_no_database(self, tmp_path: Path) -> None:
        """A file of something else, a folder that there is not, and no URL."""
        path = tmp_path / "text.db"
        path.write_text("what is this? " * 100)
        for url, why in (
            (file_url(path), "file is not a database"),
            (file_url(tmp_path / "no" / "study.db"), "unable to open database file"),
            (file_url(tmp_path), "unable to open database file"),
            ("study.db", "Could not parse SQLAlchemy URL"),
        ):
            with pytest.raises(ConfigurationError, match=why):
                Store(_study(), url)

    @pytest.mark.parametrize("search", spread([[], ["--search", "random", "--points", "6"]], 1))
    def test_a_full_disk(self, tmp_path: Path, url: str, search: list[str]) -> None:
        """The command ends with what it could not write; what is kept stays."""
        Store(replace(_study(), name="program_of_fronts"), url)
        most = (tmp_path / "study.db").stat().st_size + 4096
        command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json"]
        command += ["--vary", "rows=8,16,24,32,48,96", "--storage", url, "--jobs", "1", *search]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        # Python writes as much of a compiled module as fits, and reads it next time.
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
        optuna.load_study(study_name="program_of_fronts", storage=url)


def _proved(study: Study, index: int, by: int) -> Outcome:
    return Outcome(
        index=index,
        setting=study.space[index],
        status="pruned",
        pruned_by=by,
        executed=_executed(study),
    )


def _executed(study: Study) -> dict[str, str | None]:
    return {"": sha256(study.program.read_bytes()).hexdigest()}


def test_nothing_is_logged_of_connections_that_a_signal_closes(tmp_path: Path) -> None:
    """The library would log a traceback of what a signal raises in it."""
    open_storage(f"sqlite:///{tmp_path / 'study.db'}")
    assert not logging.getLogger("sqlalchemy.pool.impl.QueuePool").isEnabledFor(logging.ERROR)


@pytest.mark.usefixtures("soon")
def test_after_a_signal_while_it_reads_or_writes_it_can_be_written(url: str) -> None:
    """What a signal interrupts holds the database as long as somebody has its exception."""
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

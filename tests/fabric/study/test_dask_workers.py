"""Points on a Dask cluster, on loopback: workers that are lost, late, or not there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import cast

import dask
import pytest
from distributed import Client, KilledWorker, LocalCluster
from distributed.comm.core import CommClosedError
from distributed.scheduler import WorkerState

from fabric import ConfigurationError, Study, grid
from fabric.explore.study import workers as clusters
from fabric.explore.study.conducting import conduct
from fabric.explore.study.evaluation import Job, engine_digest
from fabric.explore.study.result import StudyResult
from fabric.explore.study.session import NotKept
from fabric.explore.study.workers import DaskWorkers

PROGRAM = Path(__file__).parent / "program_of_ends.py"


@pytest.fixture(scope="module", autouse=True)
def _loops() -> Iterator[None]:
    """Close the event loops that Dask leaves open: they are no fault of the tests that follow."""
    yield
    # Asked for its type: a weak reference to what is gone answers nothing else.
    loops = [each for each in gc.get_objects() if issubclass(type(each), asyncio.BaseEventLoop)]
    for loop in loops:
        if not loop.is_running():
            loop.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Start a cluster of two processes."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def address(cluster: LocalCluster) -> str:
    """Return the address of a scheduler with two workers that have nothing to do.

    A nanny starts another process for one that has ended, but gives up where that ends, too.
    """
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        for _ in range(10):
            with contextlib.suppress(TimeoutError):
                client.wait_for_workers(2, timeout=10)
                return cluster.scheduler_address
            cluster.scale(0)
            cluster.scale(2)
    raise AssertionError("two workers did not come")


def _study(*acts: str, once: str = "") -> Study:
    return Study(program=PROGRAM, space=grid(act=acts), fixed={"once": once}, name="ends")


def _conducted(study: Study, address: str, timeout_seconds: float | None = None) -> StudyResult:
    workers = DaskWorkers(address, timeout_seconds)
    try:
        return conduct(study, workers, NotKept(), lambda _: None, timeout_seconds=timeout_seconds)
    finally:
        workers.close()


def test_designs_over_inputs(address: str, tmp_path: Path) -> None:
    """Each run is handed out by itself; one that loses its worker is run by another one."""
    study = Study(
        program=PROGRAM,
        space=grid(act=("a", "is killed once")),
        over=grid(once=(str(tmp_path / "one"), str(tmp_path / "two"))),
        minimize=("mean:cycles",),
        name="ends",
    )
    result = _conducted(study, address)
    assert [each.status for each in result.outcomes] == ["completed", "completed"]
    assert [each.status for each in result.runs] == ["completed"] * 4
    assert result.front == (0, 1)


def test_a_point_that_loses_its_worker_is_run_by_another_one(address: str, tmp_path: Path) -> None:
    """In the middle of the point, by SIGKILL."""
    once = tmp_path / "once"
    result = _conducted(_study("a", "is killed once", "b", "c", once=str(once)), address)
    assert once.exists()
    assert [each.status for each in result.outcomes] == ["completed"] * 4


def test_a_point_that_takes_too_long_is_the_only_one(address: str) -> None:
    """Its worker begins anew."""
    # What a worker imports with its first point takes long on a loaded machine.
    _conducted(_study("a", "b", "c", "d"), address)
    result = _conducted(_study("a", "never ends", "b", "c"), address, timeout_seconds=8.0)
    ends = [(each.status, each.reason) for each in result.outcomes]
    completed = ("completed", None)
    assert ends == [completed, ("timeout", "took longer than 8 s"), completed, completed]


def test_nothing_is_left_on_the_cluster(address: str) -> None:
    """Not even a point that was under way."""
    study = _study("never ends")
    workers = DaskWorkers(address, None)
    late = workers.run(Job.of(study, study.point(0)))
    while not workers.at_work():
        assert not late.done()
    workers.close()
    assert late.done()
    with Client(address, set_as_default=False) as client:
        assert not any(client.processing().values())
        assert not any(client.has_what().values())


@pytest.mark.exhaustive
def test_a_point_that_loses_every_worker_is_lost(address: str) -> None:
    """As often as the cluster allows; the others run."""
    result = _conducted(_study("a", "reads nowhere", "b"), address)
    ends = [(each.status, each.reason) for each in result.outcomes]
    completed = ("completed", None)
    assert ends == [completed, ("lost", "its worker ended (4 times)"), completed]


def test_a_cluster_that_loses_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no nannies, and are killed while one has a point: nobody waits for ever."""
    monkeypatch.setattr(clusters, "_DESERTED_SECONDS", 1)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--no-dashboard"]
    with LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        address = cluster.scheduler_address
        with (
            subprocess.Popen([*command, address], stderr=subprocess.DEVNULL) as process,
            contextlib.ExitStack() as at_the_end,
        ):
            at_the_end.callback(process.kill)
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            workers = DaskWorkers(address, None)
            at_the_end.callback(workers.close)
            study = _study("never ends")
            point = workers.run(Job.of(study, study.point(0)))
            while not workers.at_work():
                assert not point.done()
            process.kill()
            with pytest.raises(OSError, match="the Dask cluster has lost all workers"):
                point.result(timeout=120)


def test_what_is_no_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address, and nobody there."""
    monkeypatch.setattr(clusters, "_CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(ConfigurationError, match=f"there is no Dask cluster at {address}"):
            DaskWorkers(address, None)


def test_a_cluster_with_another_fabric_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers may be others."""
    monkeypatch.setattr(clusters, "_here", lambda: "another")
    with pytest.raises(ConfigurationError, match="has another version of the fabric"):
        DaskWorkers(address, None)


def test_a_worker_that_leaves_while_it_is_asked_does_not_count(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is there."""
    digest, first = engine_digest(), tmp_path / "first"

    def asked() -> str:
        try:
            first.touch(exist_ok=False)
        except FileExistsError:
            return digest
        os._exit(1)

    monkeypatch.setattr(clusters, "_here", lambda: digest)
    monkeypatch.setattr(clusters, "engine_digest", asked)
    workers = DaskWorkers(address, None)
    slots = workers.slots
    workers.close()
    assert slots == 1


@pytest.mark.exhaustive
def test_a_cluster_without_workers_is_refused() -> None:
    """There is nobody to wait for."""
    with (
        LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        pytest.raises(ConfigurationError, match="has no workers: expected one"),
    ):
        DaskWorkers(cluster.scheduler_address, None)


class Answering:
    """A cluster that answers as it is told, and of which all workers have all questions."""

    status = "running"

    def __init__(self, answers: dict[str, object], raised: Exception | None = None) -> None:
        self.answers, self.raised = answers, raised
        self.key = "question"

    def __call__(self, *_: object, **__: object) -> Answering:
        """Connect."""
        return self

    def run(self, *_: object, **__: object) -> dict[str, object]:
        """Ask each worker."""
        return self.answers

    def submit(self, *_: object, **__: object) -> Answering:
        """Ask one."""
        return self

    def result(self, timeout: float) -> object:
        """Fail."""
        assert self.raised is not None
        assert timeout > 0
        raise self.raised

    def processing(self) -> dict[str, list[str]]:
        """Return who works on what."""
        return {}

    def cancel(self, *_: object, **__: object) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Leave."""


@pytest.mark.parametrize(
    ("answers", "slots"),
    [
        ({"a": engine_digest()}, 1),
        ({"a": engine_digest(), "b": CommClosedError(), "c": engine_digest()}, 2),
    ],
)
def test_workers_that_leave_while_they_are_asked(
    answers: dict[str, object], slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not counted."""
    monkeypatch.setattr("distributed.Client", Answering(answers))
    workers = DaskWorkers("tcp://there:1", None)
    assert workers.slots == slots
    workers.close()


@pytest.mark.parametrize(
    ("answer", "raised", "told"),
    [
        (ImportError("no fabric"), ConfigurationError, "cannot import the fabric (no fabric)"),
        (CommClosedError(), ConfigurationError, "tcp://there:1 has no workers: expected one"),
        ("another", ConfigurationError, "worker b of tcp://there:1 has another version of the"),
        (ZeroDivisionError("on purpose"), ZeroDivisionError, "on purpose"),
    ],
)
def test_workers_that_cannot_be_used(
    answer: object, raised: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker answers instead of its digest is told."""
    monkeypatch.setattr("distributed.Client", Answering({"b": answer}))
    with pytest.raises(raised, match=re.escape(told)):
        DaskWorkers("tcp://there:1", None)


ONE = cast("WorkerState", None)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KilledWorker("question", ONE, 3), "4 times"),
        (KilledWorker("question", ONE, 0), "1 time"),
        (CancelledError(), "the cluster has cancelled it"),
    ],
)
def test_questions_without_an_answer(
    raised: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point that loses as many workers as the cluster allows, and one more, is lost."""
    monkeypatch.setattr("distributed.Client", Answering({"a": engine_digest()}, raised))
    workers = DaskWorkers("tcp://there:1", None)
    study = _study("a")
    with pytest.raises(clusters.WorkerLost) as lost:
        workers.run(Job.of(study, study.point(0))).result()
    assert str(lost.value) == told
    workers.close()

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from fabric import ConfigurationError, Study, grid
from fabric.explore.study import workers as clusters
from fabric.explore.study.driver import conduct
from fabric.explore.study.evaluation import Job, engine_digest
from fabric.explore.study.result import StudyResult
from fabric.explore.study.session import BaseStore
from fabric.explore.study.workers import DaskWorkers

PROGRAM = Path(__file__).parent / "program_of_ends.py"


@pytest.fixture(scope="module", autouse=True)
def _loops() -> Iterator[None]:
    yield
    # ``isinstance`` raises an error for a weak proxy of a deleted object; ``type`` does not.
    loops = [each for each in gc.get_objects() if issubclass(type(each), asyncio.BaseEventLoop)]
    for loop in loops:
        if not loop.is_running():
            loop.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
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
    # A nanny replaces a process that ended, but gives up if the replacement ends, too.
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
        return conduct(study, workers, BaseStore(), lambda _: None)
    finally:
        workers.close()


@pytest.mark.deep
def test_point_that_loses_its_worker_runs_again(address: str, tmp_path: Path) -> None:
    once = tmp_path / "once"
    result = _conducted(_study("a", "is killed once", "b", "c", once=str(once)), address)
    assert once.exists()
    assert [each.status for each in result.outcomes] == ["completed"] * 4


@pytest.mark.deep
def test_point_over_its_time_is_the_only_timeout(address: str) -> None:
    # The imports of a worker's first point are slow on a loaded machine.
    _conducted(_study("a", "b", "c", "d"), address)
    result = _conducted(_study("a", "never ends", "b", "c"), address, timeout_seconds=8.0)
    ends = [(each.status, each.reason) for each in result.outcomes]
    completed = ("completed", None)
    assert ends == [completed, ("timeout", "took longer than 8 s"), completed, completed]


@pytest.mark.deep
def test_closed_workers_leave_nothing_on_the_cluster(address: str) -> None:
    study = _study("never ends")
    workers = DaskWorkers(address, None)
    late = workers.run(Job.of(study, study.point(0)))
    while not any(workers._client.processing().values()):
        assert not late.done()
    workers.close()
    assert late.done()
    with Client(address, set_as_default=False) as client:
        assert not any(client.processing().values())
        assert not any(client.has_what().values())


@pytest.mark.deep
def test_cluster_that_loses_all_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
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
            while not any(workers._client.processing().values()):
                assert not point.done()
            process.kill()
            with pytest.raises(OSError, match="the Dask cluster has lost all workers"):
                point.result(timeout=120)


def test_cluster_with_another_fabric_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_own_digest", lambda: "another")
    with pytest.raises(ConfigurationError, match="has another version of the fabric"):
        DaskWorkers(address, None)


def test_worker_that_leaves_early_does_not_count(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, first = engine_digest(), tmp_path / "first"

    def asked() -> str:
        try:
            first.touch(exist_ok=False)
        except FileExistsError:
            return digest
        os._exit(1)

    monkeypatch.setattr(clusters, "_own_digest", lambda: digest)
    monkeypatch.setattr(clusters, "engine_digest", asked)
    workers = DaskWorkers(address, None)
    slots = workers.slots
    workers.close()
    assert slots == 1

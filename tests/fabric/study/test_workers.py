from __future__ import annotations

import os
from collections.abc import Iterator
from multiprocessing.popen_forkserver import Popen
from pathlib import Path

import pytest

from fabric import Outcome, Study, grid
from fabric.explore.study import workers as processes
from fabric.explore.study.driver import conduct
from fabric.explore.study.evaluation import Job
from fabric.explore.study.session import BaseStore
from fabric.explore.study.workers import LocalWorkers

PROGRAM = Path(__file__).parent / "program_of_ends.py"


@pytest.fixture
def workers() -> Iterator[LocalWorkers]:
    found = LocalWorkers(2, 8.0)
    yield found
    found.close()
    _check_nothing_is_left(found)


def _check_nothing_is_left(workers: LocalWorkers) -> None:
    assert not any(each.is_alive() for each in workers.processes)


def study_of(*acts: str) -> Study:
    return Study(program=PROGRAM, space=grid(act=acts), name="ends")


def _by_act(outcomes: tuple[Outcome, ...]) -> dict[str, tuple[str, str | None]]:
    return {str(each.setting["act"]): (each.status, each.reason) for each in outcomes}


@pytest.mark.deep
def test_every_end_of_a_process_is_an_outcome_with_its_reason(workers: LocalWorkers) -> None:
    acts = (
        "exits",
        "exits at once",
        "is killed",
        "is asked to end",
        "reads nowhere",
        "never ends",
        "leaves a thread",
        "prints",
        "reads",
    )
    study = study_of("a", *acts, "b")
    result = conduct(study, workers, BaseStore(), lambda _: None)
    found = _by_act(result.outcomes)
    lines = [line.strip() for line in PROGRAM.read_text().splitlines()]
    exits, reads = (f"{PROGRAM}:{lines.index(each) + 1}" for each in ("sys.exit(3)", "input()"))
    assert found == {
        "a": ("completed", None),
        "exits": ("refused", f"{exits}: build() raised SystemExit: 3"),
        "exits at once": ("lost", "its worker ended (exit status 3)"),
        "is killed": ("lost", "its worker ended (killed by SIGKILL)"),
        "is asked to end": ("lost", "its worker ended (killed by SIGTERM)"),
        "reads nowhere": ("lost", "its worker ended (killed by SIGSEGV)"),
        "never ends": ("timeout", "took longer than 8 s"),
        "leaves a thread": ("completed", None),
        "prints": ("completed", None),
        "reads": ("refused", f"{reads}: build() raised EOFError: EOF when reading a line"),
        "b": ("completed", None),
    }


def test_process_exits_are_polled_by_one_thread_at_a_time(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, asked = Popen.poll, []

    def owned(process: Popen, flag: int = os.WNOHANG) -> int | None:
        asked.append(processes._CHILDREN._is_owned())  # type: ignore[attr-defined]
        return poll(process, flag)

    monkeypatch.setattr(Popen, "poll", owned)
    study = study_of("a", "exits at once", "b", "reads nowhere")
    conduct(study, workers, BaseStore(), lambda _: None)
    workers.close()
    assert asked
    assert all(asked)


def test_killed_worker_loses_only_its_point(workers: LocalWorkers) -> None:
    study = study_of("never ends", "a", "b")
    late = workers.run(Job.of(study, study.point(0)))
    other = workers.run(Job.of(study, study.point(1)))
    assert other.result().status == "completed"
    process = other.result().numbers["extra.process"]
    (victim,) = (each for each in workers.processes if each.pid != process)
    victim.kill()
    with pytest.raises(Exception, match="killed by SIGKILL"):
        late.result()
    again = [workers.run(Job.of(study, study.point(2))) for _ in range(2)]
    assert [each.result().status for each in again] == ["completed", "completed"]


def test_killed_idle_worker_loses_nothing(workers: LocalWorkers) -> None:
    study = study_of("a", "b")
    workers.run(Job.of(study, study.point(0))).result()
    for process in workers.processes:
        process.kill()
        process.join()
    assert workers.run(Job.of(study, study.point(1))).result().status == "completed"


def test_worker_is_replaced_after_its_points(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_POINTS_OF_A_WORKER", 2)
    study = study_of("a", "b", "c")
    found = [workers.run(Job.of(study, study.point(n))).result() for n in range(3)]
    first, second, third = (each.numbers["extra.process"] for each in found)
    assert first == second != third

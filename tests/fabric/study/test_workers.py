"""Processes that work on points: whatever becomes of one, the others do not notice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.popen_forkserver import Popen
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabric import Outcome, Point, Study, grid
from fabric.explore.study import workers as processes
from fabric.explore.study.conducting import conduct
from fabric.explore.study.evaluation import Before, Job
from fabric.explore.study.session import NotKept
from fabric.explore.study.workers import LocalWorkers

PROGRAM = Path(__file__).parent / "program_of_ends.py"


@pytest.fixture
def workers() -> Iterator[LocalWorkers]:
    """Two processes; a point has time enough for all but one that never ends."""
    found = LocalWorkers(2, 8.0)
    yield found
    found.close()
    _check_nothing_is_left(found)


def _check_nothing_is_left(workers: LocalWorkers) -> None:
    assert not any(each.is_alive() for each in workers.processes)


def study_of(*acts: str) -> Study:
    """A study with a point for each of these acts."""
    return Study(program=PROGRAM, space=grid(act=acts), name="ends")


def _by_act(outcomes: tuple[Outcome, ...]) -> dict[str, tuple[str, str | None]]:
    return {str(each.setting["act"]): (each.status, each.reason) for each in outcomes}


def test_every_end_is_an_outcome_with_its_reason(workers: LocalWorkers) -> None:
    """And the points beside it run."""
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
    result = conduct(study, workers, NotKept(), lambda _: None, timeout_seconds=8.0)
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


_PRINTS = """
from tests.fabric.study.test_workers import study_of
from fabric.explore.study.conducting import conduct
from fabric.explore.study.session import NotKept
from fabric.explore.study.workers import LocalWorkers

if __name__ == "__main__":
    workers = LocalWorkers(2, 30.0)
    conduct(study_of("prints"), workers, NotKept(), lambda _: None, timeout_seconds=30.0)
    workers.close()
"""


def test_what_programs_print_goes_to_standard_error(tmp_path: Path) -> None:
    """Of a process of its own: workers have the one of whoever started the first of them."""
    script = tmp_path / "prints.py"
    script.write_text(_PRINTS)
    ended = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(PROGRAM.parents[3])},
    )
    assert ended.stdout == ""
    assert sorted(ended.stderr.splitlines()) == ["said by C", "said by Python"]


def test_how_a_process_ended_is_asked_by_one_thread_at_a_time(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python tells it once, and asks for all of them whenever another one starts."""
    poll, asked = Popen.poll, []

    def owned(process: Popen, flag: int = os.WNOHANG) -> int | None:
        asked.append(processes._CHILDREN._is_owned())  # type: ignore[attr-defined]
        return poll(process, flag)

    monkeypatch.setattr(Popen, "poll", owned)
    study = study_of("a", "exits at once", "b", "reads nowhere")
    conduct(study, workers, NotKept(), lambda _: None)
    workers.close()
    assert asked
    assert all(asked)


def test_a_worker_that_is_killed_loses_its_point_only(workers: LocalWorkers) -> None:
    """From outside, as by the system for memory; the other one goes on, and a new one begins."""
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


def test_a_worker_that_is_killed_while_it_is_idle_loses_nothing(workers: LocalWorkers) -> None:
    """The next point has another one."""
    study = study_of("a", "b")
    workers.run(Job.of(study, study.point(0))).result()
    for process in workers.processes:
        process.kill()
        process.join()
    assert workers.run(Job.of(study, study.point(1))).result().status == "completed"


def test_a_worker_is_replaced_after_so_many_points(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What programs leave behind stays bounded."""
    monkeypatch.setattr(processes, "_POINTS_OF_A_WORKER", 2)
    study = study_of("a", "b", "c")
    found = [workers.run(Job.of(study, study.point(n))).result() for n in range(3)]
    first, second, third = (each.numbers["extra.process"] for each in found)
    assert first == second != third


def test_what_becomes_of_points_that_are_not_answered() -> None:
    """A point that took too long has had as much time as it was given; our faults are raised."""
    job = Job.of(study_of("a"), Point(0, {"act": "a"}))
    late = processes.unanswered(job, TimeoutError(), 2.5)
    assert (late.status, late.reason, late.wall_seconds) == (
        "timeout",
        "took longer than 2.5 s",
        2.5,
    )
    assert (late.index, late.setting) == (0, {"act": "a"})
    lost = processes.unanswered(job, processes.WorkerLost.with_exit_code(None), 2.5)
    assert (lost.status, lost.wall_seconds) == ("lost", None)
    assert lost.reason == "its worker ended (nobody knows how)"
    assert str(processes.WorkerLost.with_exit_code(0)) == "exit status 0"
    with pytest.raises(KeyError):
        processes.unanswered(job, KeyError(), None)


class Told:
    """Two at a time, answered at once: of point ``n`` at least ``9 - n`` cycles are known."""

    slots = 2

    def __init__(self, lost: dict[int, Exception] | None = None) -> None:
        self.ran: list[int] = []
        self._lost = lost or {}

    def look(self, job: Job) -> Future[Before]:
        """Say what is known, or fail."""
        found: Future[Before] = Future()
        index = job.point.index
        if index in self._lost:
            found.set_exception(self._lost[index])
        else:
            executed = {"": "before"}
            found.set_result(Before(index, {"cycles": 9 - index}, ("cycles",), executed=executed))
        return found

    def run(self, job: Job) -> Future[Outcome]:
        """Come to nine cycles; one point says what was executed, and one is not answered."""
        found: Future[Outcome] = Future()
        point = job.point
        self.ran.append(point.index)
        outcome = Outcome(
            index=point.index,
            setting=point.setting,
            status="completed",
            numbers={"cycles": 9},
            executed={"": "run"} if point.index == 3 else {},
        )
        if point.index == 2:
            found.set_exception(TimeoutError())
        else:
            found.set_result(outcome)
        return found

    def close(self) -> None:
        """Nothing is under way."""


def test_how_a_study_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many points as there are workers are under way, the most promising ones first.

    What was known before a point ran stays with its outcome.
    """
    times = iter([5.0, 7.5])
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("fabric.explore.study.conducting.time", clock)
    study = replace(study_of(*"abcde"), minimize=("cycles",))
    workers, far = Told(), []
    result = conduct(
        study,
        workers,
        NotKept(),
        lambda session: far.append((len(workers.ran), len(session.outcomes))),
        timeout_seconds=2.5,
    )
    assert workers.ran == [4, 3, 2, 1, 0]
    assert far == [(2, 0), (4, 2), (5, 4), (5, 5)]
    assert [each.index for each in result.outcomes] == list(range(5))
    assert [each.status for each in result.outcomes] == [
        "completed", "completed", "timeout", "completed", "completed",
    ]  # fmt: skip
    assert result.outcomes[2].reason == "took longer than 2.5 s"
    assert [each.executed[""] for each in result.outcomes] == [
        "before", "before", "before", "run", "before",
    ]  # fmt: skip
    assert all(each.bounds == {"cycles": 9 - each.index} for each in result.outcomes)
    assert {each.exact for each in result.outcomes} == {("cycles",)}
    assert (result.wall_seconds, result.interrupted, result.runs) == (2.5, False, ())


def test_a_study_that_is_stopped_has_what_is_done() -> None:
    """What had ended by then is known."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    study = replace(study_of(*"abcde"), minimize=("cycles",))
    result = conduct(study, Told(), NotKept(), stop)
    assert result.interrupted
    assert [each.index for each in result.outcomes] == [3, 4]


def test_points_that_cannot_be_looked_at() -> None:
    """They are not run; a fault of ours is raised."""
    study = replace(study_of(*"abcd"), minimize=("cycles",))
    workers = Told({1: TimeoutError(), 3: processes.WorkerLost("gone")})
    found = conduct(study, workers, NotKept(), lambda _: None, timeout_seconds=1.5).outcomes
    assert workers.ran == [2, 0]
    assert (found[1].status, found[1].reason) == ("timeout", "took longer than 1.5 s")
    assert (found[3].status, found[3].reason) == ("lost", "its worker ended (gone)")
    with pytest.raises(KeyError):
        conduct(study, Told({1: KeyError()}), NotKept(), lambda _: None)


@pytest.mark.exhaustive
def test_memory_stays_bounded_over_hundreds_of_points() -> None:
    """A program leaves a mebibyte behind each time: no process has more than 200 of them."""
    study = Study(
        program=PROGRAM, space=grid(act=("leaves a lot",), number=range(600)), name="ends"
    )
    workers = LocalWorkers(1, None)
    try:
        result = conduct(study, workers, NotKept(), lambda _: None)
    finally:
        workers.close()
    peaks = [each.numbers["extra.peak_kilobytes"] for each in result.outcomes]
    processes = {each.numbers["extra.process"] for each in result.outcomes}
    assert len(processes) == 3
    assert 150 * 2**10 < max(peaks) - min(peaks) < 300 * 2**10

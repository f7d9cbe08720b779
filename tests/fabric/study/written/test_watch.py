"""How far a study is: one line on a terminal, gone in the end; nothing where nobody looks."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from rich.console import Console

from fabric import Outcome, Study, StudySession, grid
from fabric.explore.study.search import Search, SearchSession
from fabric.explore.study.written.terminal import Watch


def session(name: str, statuses: list[str], points: int = 200) -> StudySession:
    """Return a session in which points ended like this."""
    study = Study(program=Path("x.py"), space=grid(a=range(points)), name=name)
    found = StudySession(study)
    for n, status in enumerate(statuses):
        found.tell(Outcome(index=n, setting={"a": n}, status=status))  # type: ignore[arg-type]
    return found


@pytest.fixture
def terminal() -> Console:
    """Return a terminal that keeps what is written."""
    return Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)


def written(console: Console) -> str:
    """Return what was written."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_line(terminal: Console) -> None:
    """Points of all, proved away, failed, the time so far and an estimate of the rest."""
    clock = itertools.count()
    now = session("tiles", ["completed"] * 10 + ["pruned"] * 5 + ["timeout", "infeasible"])
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(now)
        for index in range(17, 60):
            now.tell(Outcome(index=index, setting={"a": index}, status="deadlock"))
            watch(now)
    text = written(terminal)

    assert "tiles" in text
    assert "17/200 points, 6 proved away, 1 failed" in text
    assert "60/200 points, 6 proved away, 44 failed" in text
    assert "remaining 0:" in text
    assert text.endswith("\x1b[2K")


@pytest.mark.parametrize(("later", "told"), [(0.0625, "1/200"), (0.1, "2/200")])
def test_not_too_often(later: float, told: str, terminal: Console) -> None:
    """What is shown is shown for a tenth of a second at least."""
    seconds = [0.0]
    now = session("tiles", ["completed"])
    with Watch(terminal, seconds=lambda: seconds[0]) as watch:
        watch(now)
        now.tell(Outcome(index=1, setting={"a": 1}, status="deadlock"))
        seconds[0] = later
        watch(now)
    assert re.findall(r"\d/200 points", written(terminal))[-1] == f"{told} points"


def test_over_inputs(terminal: Console) -> None:
    """Runs are counted; those on inputs held out when it is known which designs have them."""
    study = Study(
        program=Path(__file__),
        space=grid(a=range(2)),
        over=grid(b=range(3)),
        hold_out=1,
        minimize=("mean:cycles",),
        name="over",
    )
    now = StudySession(study, look=lambda _: ())
    clock = itertools.count()
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(now)
        while (point := now.ask()) is not None:
            numbers = {"cycles": point.index}
            now.tell(
                Outcome(
                    index=point.index, setting=point.setting, status="completed", numbers=numbers
                )
            )
            watch(now)
    text = written(terminal)
    assert "0/4 runs, 0 proved away, 0 failed" in text
    assert "5/5 runs" in text


def test_several(terminal: Console) -> None:
    """One study after the other has the line."""
    clock = itertools.count()
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(session("first", ["completed"]))
        watch(session("second", []))
    shown = [line for line in written(terminal).split("\r") if "200 points" in line]
    assert "first" in shown[0]
    assert "1/200" in shown[0]
    assert "second" in shown[-1]
    assert "first" not in shown[-1]
    assert "0/200" in shown[-1]


def test_piped() -> None:
    """Nothing is written to a file."""
    console = Console(file=io.StringIO())
    with Watch(console) as watch:
        watch(session("tiles", ["completed"]))
    assert not written(console)


def test_search(terminal: Console) -> None:
    """How long a search takes is not known: it says nothing of it."""
    study = Study(program=Path(__file__), space=grid(a=range(1000), b=range(1000)), name="large")
    now = SearchSession(study, Search("random", 50))
    now.tell(Outcome(index=3, setting={"a": 0, "b": 3}, status="completed"))
    clock = itertools.count()
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(now)
    assert "1/? points, 0 proved away, 0 failed" in written(terminal)
    assert "1000000" not in written(terminal)

"""How far a study is: one line on a terminal, gone in the end; nothing where nobody looks."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
from rich.console import Console
from typing_extensions import override

from fabric import Outcome, Study, StudySession, grid
from fabric.study.kept import NotKept
from fabric.study.out.watch import Watch


def session(name: str, statuses: list[str], points: int = 200) -> StudySession:
    """Return a session in which points ended like this."""
    study = Study(program=Path("x.py"), space=grid(a=range(points)), name=name)
    known = [
        Outcome(index=n, setting={"a": n}, status=status)  # type: ignore[arg-type]
        for n, status in enumerate(statuses)
    ]
    return StudySession(study, _Known(known))


class _Known(NotKept):
    """Has some outcomes of earlier sessions."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self._outcomes = outcomes

    @override
    def known(self) -> list[Outcome]:
        return self._outcomes


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

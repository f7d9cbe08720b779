from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
from rich.console import Console

from fabric import Outcome, Study, StudySession, grid
from fabric.explore.study.written.terminal import Watch


def session(name: str, statuses: list[str], points: int = 200) -> StudySession:
    study = Study(program=Path("x.py"), space=grid(a=range(points)), name=name)
    found = StudySession(study)
    for n, status in enumerate(statuses):
        found.tell(Outcome(index=n, setting={"a": n}, status=status))  # type: ignore[arg-type]
    return found


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_watch_line_has_counts_and_remaining_time(terminal: Console) -> None:
    clock = itertools.count()
    now = session("tiles", ["completed"] * 10 + ["pruned"] * 5 + ["timeout", "infeasible"])
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(now)
        for index in range(17, 60):
            now.tell(Outcome(index=index, setting={"a": index}, status="deadlock"))
            watch(now)
    text = written(terminal)

    assert "tiles" in text
    assert "17/200 points, 6 pruned, 1 failed" in text
    assert "60/200 points, 6 pruned, 44 failed" in text
    assert "remaining 0:" in text
    assert text.endswith("\x1b[2K")

from __future__ import annotations

import io
import itertools
from pathlib import Path

from rich.console import Console

from fabric import Outcome, Study, StudySession, grid
from fabric.explore.study.written.terminal import Watch


def test_watch_line_has_counts_and_remaining_time() -> None:
    screen, clock = io.StringIO(), itertools.count()
    terminal = Console(file=screen, force_terminal=True, width=140, color_system=None)
    now = StudySession(Study(program=Path("x.py"), space=grid(a=range(200)), name="tiles"))
    statuses = ["completed"] * 10 + ["pruned"] * 5 + ["timeout", "infeasible"]
    for index, status in enumerate(statuses):
        now.tell(Outcome(index=index, setting={"a": index}, status=status))  # type: ignore[arg-type]
    with Watch(terminal, seconds=lambda: float(next(clock))) as watch:
        watch(now)
        for index in range(17, 60):
            now.tell(Outcome(index=index, setting={"a": index}, status="deadlock"))
            watch(now)
    text = screen.getvalue()

    assert "tiles" in text
    assert "17/200 points, 6 pruned, 1 failed" in text
    assert "60/200 points, 6 pruned, 44 failed" in text
    assert "remaining 0:" in text
    assert text.endswith("\x1b[2K")

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from structlog.testing import LogCapture

from fabric import Program, Report, simulate
from fabric.display.terminal import plain_text
from tests.schedules import SCHEDULES, schedule

LIVE = ("heartbeat", "long_stall", "partial_deadlock")
"""Events of how far a run has got at a moment that the schedule and the engine choose."""


def captured(capture: LogCapture) -> list[dict[str, Any]]:
    return [
        {"level" if name == "log_level" else name: value for name, value in event.items()}
        for event in capture.entries
    ]


def told(program: Program, folder: Path, **settings: Any) -> dict[str, Any]:
    """Run ``program``; return its report, text and log without what depends on the host.

    Live events are left out: the log does not promise them.
    """
    report = simulate(program, log_dir=folder, **settings)
    assert report.log_dir is not None
    log = (Path(report.log_dir) / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in log]
    told = replace(report, wall_seconds=None, log_dir=None)
    return {
        "report": told,
        "json": json.dumps(told.as_json(), default=str),
        "text": _text(told),
        "events": [each for each in events if each["event"] not in LIVE],
    }


def told_under_every_schedule(
    build: Callable[[], Program], folder: Path, **settings: Any
) -> dict[str, Any]:
    found = []
    for order in SCHEDULES:
        with schedule(order):
            found.append(told(build(), folder, **settings))
    for one, other in itertools.pairwise(found):
        assert one == other
    return found[0]


def _text(report: Report) -> str:
    return plain_text(report.sheet(), 120)

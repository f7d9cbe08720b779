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
"""Events with cycles that depend on the schedule and the engine."""


def captured(capture: LogCapture) -> list[dict[str, Any]]:
    return [
        {"level" if name == "log_level" else name: value for name, value in event.items()}
        for event in capture.entries
    ]


def without_host(report: Report) -> Report:
    return replace(report, wall_seconds=None, log_dir=None)


def outcome_of(program: Program, folder: Path, **settings: Any) -> dict[str, Any]:
    """Return the report, text and log of a run, without values of the host and live events."""
    report = simulate(program, log_dir=folder, **settings)
    assert report.log_dir is not None
    log = (Path(report.log_dir) / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in log]
    report = without_host(report)
    return {
        "report": report,
        "json": json.dumps(report.as_json(), default=str),
        "text": plain_text(report.sheet(), 120),
        "events": [event for event in events if event["event"] not in LIVE],
    }


def outcome_under_every_schedule(
    build: Callable[[], Program], folder: Path, **settings: Any
) -> dict[str, Any]:
    outcomes = []
    for order in SCHEDULES:
        with schedule(order):
            outcomes.append(outcome_of(build(), folder, **settings))
    for one, other in itertools.pairwise(outcomes):
        assert one == other
    return outcomes[0]

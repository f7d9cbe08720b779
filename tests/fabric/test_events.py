"""Lines that are written without structlog are those that structlog writes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from fabric.runs.runlog import RunLog
from fabric.telling.events import event_form, event_line, event_logger
from fabric.telling.plain import plain


@pytest.mark.parametrize(
    "fields",
    [
        {"cycle": 0},
        {"cycle": 3, "status": "completed", "verified": None, "elements": 1 << 70},
        {"cycle": 1, "program": 'naïve "Größe" \N{GREEK SMALL LETTER MU}\n\\.py', "parameters": {}},
        {"cycle": 1, "text": "\N{GRINNING FACE} \udc80 \x7f \x00"},
        {"cycle": 1, "floats": [0.1, 1e300, 1e-7, -0.0, 2.0, 1e16], "flags": (True, False)},
        {"cycle": 1, "nested": {"z": [{"b": None, "a": [[], {}]}], "a": {"1": 2}}, "b": 1},
    ],
)
@pytest.mark.parametrize("name", ["run_started", "run_ended"])
def test_same_line(name: str, fields: dict[str, object]) -> None:
    """One event gives one line, whoever writes it."""
    file = io.StringIO()
    event_logger(file).info(name, **fields)

    assert file.getvalue() == event_line(name, fields)


@pytest.mark.parametrize("name", ["a", 'naïve "%s"\n\\', "\N{GRINNING FACE} \udc80 \x7f %"])
def test_form(name: str) -> None:
    """A form that is filled in is the line, too."""
    fields = {"cycle": 3, "operator": name, "flops": 1 << 70}

    found = event_form("operator_finished", *fields) % (3, json.dumps(name), 1 << 70)

    assert event_line("operator_finished", fields) == found


def test_order(tmp_path: Path) -> None:
    """Lines stand in the order in which they were told, and at once."""
    found = {"value": float("inf"), "path": tmp_path}
    with RunLog(tmp_path, pytest.fail) as log:
        for cycle in range(4):
            (log.event if cycle % 2 else log.frame)("heartbeat", cycle, **found)
            lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
            assert len(lines) == cycle + 1
            told = {name: plain(each) for name, each in found.items()}
            assert event_line("heartbeat", {"cycle": cycle, **told}) == f"{lines[-1]}\n"

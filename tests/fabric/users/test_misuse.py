"""Mistakes of users' operators in a run are errors with a line."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabric import Program, Report, simulate
from fabric.analysis.trace.selection import TraceOptions
from fabric.runs.stepped import open_run
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.fabric.users import misuse
from tests.fabric.users.misuse import ROWS, Misuse, Row, blamed_line
from tests.outcomes import without_host
from tests.profiles import of_profile
from tests.schedules import SCHEDULES, schedule


def _report(row: Row, **settings: Any) -> Report:
    mode = "functional" if row.functional else "timing"
    with Program("misuse", mode=mode) as program:
        Charge()(Relay()(Misuse(row, name="wrong")(Ticks(3)())))
    return without_host(simulate(program, **settings))


def _message(row: Row) -> str:
    at = f"{row.body.__code__.co_filename}:{blamed_line(row.body)}"
    return f"wrong: {row.message.format(stream='wrong.0 -> relay_1.0', at=at)}"


@pytest.mark.parametrize("name", ROWS)
def test_misuse_is_an_error_with_line_and_cycle(name: str) -> None:
    report = _report(ROWS[name])

    assert report.error is not None
    assert (_message(ROWS[name]), 1) == (report.error["message"], report.exit_status)


@pytest.mark.parametrize("order", SCHEDULES)
def test_misuse_is_the_same_error_under_every_schedule(order: str | int) -> None:
    with schedule(order):
        reports = {name: _report(row) for name, row in ROWS.items()}

    assert {name: _report(row) for name, row in ROWS.items()} == reports


def test_misuse_in_a_traced_run_is_the_same_error(tmp_path: Path) -> None:
    for name in list(ROWS)[:: of_profile(quick=5, deep=1)]:
        row = ROWS[name]
        report = _report(row, trace=TraceOptions(), log_dir=tmp_path)
        assert report.error is not None, name
        assert _message(row) == report.error["message"]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.functional])
def test_misuse_in_timing_mode_is_the_same_error(name: str) -> None:
    row = ROWS[name]
    if row.value != misuse.TILE:
        assert _report(row).error == _report(replace(row, functional=False)).error


def test_forgotten_await_beside_another_run_is_an_error() -> None:
    row = ROWS["call: reach forgotten"]
    shown = warnings.showwarning
    with Program("held") as program:
        Charge()(Ticks(3)())
    with warnings.catch_warnings():
        held = open_run(program)
    with held, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        report = _report(row)
    assert report.error is not None
    assert report.error["message"] == _message(row)
    assert caught == []
    assert warnings.showwarning is shown

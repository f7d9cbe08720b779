"""Every schedule gives the same report, and both modes give the same cycles."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fabric import Report
from tests.operators.cases import CASES
from tests.operators.driving import Choices, run_cases
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


def _report(operator: str, mode: str) -> dict[str, Any]:
    source = random.Random(operator)
    cases = [CASES[operator](Choices(source.randbytes(48))) for _ in range(40)]
    return counted(run_cases(cases, mode))


def counted(report: Report) -> dict[str, Any]:
    fields = report.as_json()
    for name in ("wall_seconds", "mode", "verified", "verification"):
        del fields[name]
    return {**fields, "units": report.units, "channel counters": report.channels_counters}


@pytest.mark.parametrize("operator", spread(CASES, 4))
def test_report_is_the_same_under_every_schedule(operator: str) -> None:
    reports = []
    for name in SCHEDULES:
        with schedule(name):
            reports.append(_report(operator, "functional"))
    assert [reports[0]] * len(SCHEDULES) == reports


@pytest.mark.parametrize("operator", spread(CASES, 4))
def test_cycles_do_not_depend_on_the_mode(operator: str) -> None:
    assert _report(operator, "functional") == _report(operator, "timing")

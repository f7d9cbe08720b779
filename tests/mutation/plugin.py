"""A pytest plugin for the run that collects what covers what: notes times, draws fewer examples."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

_examples: Any = vars(hypothesis.settings)["max_examples"]


def _fewer(settings: hypothesis.settings) -> int:
    count: int = _examples.fget(settings)
    return max(count // 10, min(count, 10))


def pytest_configure() -> None:
    """Draw a tenth of the examples: lines that they reach are reached by the first few."""
    # The tests state their numbers themselves: a profile would not lower them.
    type.__setattr__(hypothesis.settings, "max_examples", property(_fewer))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append how long a test took to the file that the environment names."""
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        entry = {"test": report.nodeid, "seconds": report.duration, "passed": report.passed}
        with Path(os.environ["MUTATION_SECONDS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

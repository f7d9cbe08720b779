"""A pytest plugin for the run that collects what covers what.

It notes times and who starts processes, draws fewer examples, and lets processes that a test starts
note what they cover.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest

CHILD: Final = "child"
"""Of a test: what a process covers that it has started."""

_NAMES: Final = ("COVERAGE_PROCESS_START", "MUTATION_CONTEXT")

_STARTS: Final = {"subprocess.Popen", "os.fork", "os.posix_spawn"}

_starting: Final[set[str]] = set()
"""The test that runs, if it has started a process."""

_examples: Any = vars(hypothesis.settings)["max_examples"]
_popen: Final = subprocess.Popen.__init__


def _fewer(settings: hypothesis.settings) -> int:
    count: int = _examples.fget(settings)
    return max(count // 10, min(count, 10))


def pytest_configure() -> None:
    """Draw a tenth of the examples: lines that they reach are reached by the first few."""
    # The tests state their numbers themselves: a profile would not lower them.
    type.__setattr__(hypothesis.settings, "max_examples", property(_fewer))
    setattr(subprocess.Popen, "__init__", _started)  # noqa: B010 - mypy knows better
    sys.addaudithook(_audited)


def _audited(event: str, _: tuple[object, ...]) -> None:
    if event in _STARTS and "COVERAGE_PROCESS_START" in os.environ:
        _starting.add(os.environ["MUTATION_CONTEXT"])


def _started(process: subprocess.Popen[Any], *arguments: Any, **more: Any) -> None:
    """Start a process whose environment a test states, perhaps when it was imported."""
    if more.get("env") is not None:
        ours = {name: os.environ[name] for name in _NAMES if name in os.environ}
        more["env"] = {**more["env"], **ours}
    _popen(process, *arguments, **more)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have the processes that are started by a test measured, in its name.

    What coverage installs beside itself begins in every process that finds the first variable; its
    configuration refers to the second.
    """
    os.environ["COVERAGE_PROCESS_START"] = os.environ["MUTATION_COVERAGE"]
    os.environ["MUTATION_CONTEXT"] = f"{item.nodeid}|{CHILD}"
    _starting.clear()
    try:
        return (yield)
    finally:
        del os.environ["COVERAGE_PROCESS_START"]
        if _starting:
            _noted("MUTATION_STARTING", item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took."""
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        entry = {"test": report.nodeid, "seconds": report.duration, "passed": report.passed}
        _noted("MUTATION_SECONDS", entry)


def _noted(where: str, what: object) -> None:
    with Path(os.environ[where]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")

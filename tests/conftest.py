from __future__ import annotations

import signal
import threading
from collections.abc import Callable

# Any: settings of a worker.
from typing import Any

import pytest

from tests import profiles

profiles.register()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # pytest-benchmark measures only if tests run in one process. In a new clone, a command would
    # print that it compiles loops, so they are compiled here. SIGINT and SIGHUP may be ignored (by
    # a shell in the background, or nohup), and commands under test would inherit this. The process
    # that distributes tests to workers runs no test.
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"
        _compile(getattr(config, "workerinput", {}))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _compile(worker: dict[str, Any]) -> None:
    # Two loops take 30 seconds each. Each process begins with another loop, and links loops that
    # other processes have compiled.
    from fabric.timing.compiled.kernel import run_loop
    from fabric.timing.log import tally
    from fabric.timing.memories import banked_kernel, flat
    from fabric.timing.network import fair_share
    from fabric.timing.retiming import timing_loop

    every = (
        *(banked_kernel.advance, flat.advance),
        timing_loop.blame,
        *(run_loop, timing_loop.retime, fair_share.advance),
        tally.count_events,
    )
    number = int(worker.get("workerid", "gw0").removeprefix("gw"))
    first = number * len(every) // int(worker.get("workercount", 1))
    for loop in (*every[first:], *every[:first]):
        loop.link()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture(autouse=True)
def compiled_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first test would otherwise print that `run` compiled loops.
    monkeypatch.setattr("fabric.timing.engine.machine_code._kept_compiled", [])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``golden/NAME`` beside the test, or write it (``--write-golden``)."""

    def compare(name: str, text: str) -> None:
        file = request.path.parent / "golden" / name
        if request.config.getoption("--write-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == text

    return compare


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("exhaustive") is not None:
            item.add_marker(pytest.mark.timeout(0))

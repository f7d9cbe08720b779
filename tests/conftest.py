"""Settings all tests share."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

# Any: what a worker is told.
from typing import Any

import pytest

from tests import profiles

profiles.register()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the tests independent of who started them, and where.

    In one process nothing is spread: pytest-benchmark measures nothing where it might be.

    The loops are compiled here: in a new clone a command would say that it had to. Signals are
    taken back: what a shell starts behind it ignores SIGINT, and what nohup starts SIGHUP, and so
    would the commands under test.
    """
    # Who only hands tests out to other processes runs none.
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"
        _compile(getattr(config, "workerinput", {}))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _compile(worker: dict[str, Any]) -> None:
    """Have every loop compiled; each process begins elsewhere, and links what others have left.

    By what they take the halves are alike: in a new clone two processes compile for 30 seconds.
    """
    from fabric.timing.compiled.kernel import go_on
    from fabric.timing.log import loops
    from fabric.timing.memories import banked_kernel, flat
    from fabric.timing.network import carrying
    from fabric.timing.retiming import timing_loop

    every = (
        *(banked_kernel.advance, banked_kernel.settle, flat.advance),
        timing_loop.blame,
        *(go_on, timing_loop.retime, carrying.go_on, carrying.begin),
        *(loops.count_elements, loops.count_waits),
    )
    number = int(worker.get("workerid", "gw0").removeprefix("gw"))
    first = number * len(every) // int(worker.get("workercount", 1))
    for loop in (*every[first:], *every[:first]):
        loop.link()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture(autouse=True)
def compiled_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the loops that other tests compiled: ``run`` would mention them."""
    monkeypatch.setattr("fabric.timing.engine.machine_code._kept_names", [])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file ``golden/NAME`` beside the test; write it where asked to."""

    def compare(name: str, text: str) -> None:
        file = request.path.parent / "golden" / name
        if request.config.getoption("--write-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == text

    return compare


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let exhaustive tests take as long as they take."""
    for item in items:
        if item.get_closest_marker("exhaustive") is not None:
            item.add_marker(pytest.mark.timeout(0))

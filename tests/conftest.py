"""Settings all tests share."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from tests import profiles

profiles.register()


def pytest_configure() -> None:
    """Make the tests independent of who started them, and where.

    The loops are compiled here: in a new clone a command would say that it had to. Signals are
    taken back: what a shell starts behind it ignores SIGINT, and what nohup starts SIGHUP, and so
    would the commands under test.
    """
    from fabric.compiled.kernel import go_on
    from fabric.memories import banked_kernel, flat

    for loop in (go_on, flat.advance, banked_kernel.advance, banked_kernel.settle):
        loop.link()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture(autouse=True)
def compiled_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests had compiled: a command of this process would say that it had to."""
    monkeypatch.setattr("fabric.engine.machine_code._compiled", [])


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

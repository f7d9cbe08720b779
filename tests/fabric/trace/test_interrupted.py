from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from fabric import open_trace
from fabric.shell.cli import main
from tests.fabric.trace.recording import program, record
from tests.profiles import spread

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    report, _ = record(program("simplified_moe"), tmp_path_factory.mktemp("logs"))
    return str(report.log_dir)


@contextmanager
def signal_in_call(number: int, library: str, name: str, nth: int) -> Iterator[Callable[[], bool]]:
    left = nth

    def hook(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        code = frame.f_code
        if event == "call" and code.co_name == name and library in code.co_filename:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), number)

    sys.setprofile(hook)
    threading.setprofile(hook)
    try:
        yield lambda: left <= 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("number", spread(_SIGNALS, 1))
@pytest.mark.parametrize("nth", [1, 60])
@pytest.mark.parametrize("command", ["summary", "stalls"])
def test_signal_in_duckdb_ends_the_command_with_its_status(
    command: str, nth: int, number: int, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # DuckDB imports numpy to find the types of the given columns.
    with signal_in_call(number, "_dtype.py", "__str__", nth) as sent:
        status = main(["trace", command, run])

    assert (True, 128 + number) == (sent(), status)
    assert "damaged" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("nth", [1, 60])
def test_ctrl_c_in_duckdb_is_keyboard_interrupt(nth: int, run: str) -> None:
    with (
        signal_in_call(signal.SIGINT, "_dtype.py", "__str__", nth) as sent,
        pytest.raises(KeyboardInterrupt),
    ):
        open_trace(Path(run))
    assert sent()


def test_ctrl_c_in_a_query_is_keyboard_interrupt(run: str) -> None:
    trace = open_trace(Path(run))
    endless = trace.query("SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 7")
    main_thread, handed = threading.get_ident(), threading.Event()

    def interrupt() -> None:
        handed.wait()
        signal.pthread_kill(main_thread, signal.SIGINT)

    def query() -> None:
        handed.set()
        endless.rows()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        query()


@pytest.mark.parametrize("number", spread(_SIGNALS, 1))
def test_signal_in_pygraphviz_ends_the_command_with_its_status(number: int, tmp_path: Path) -> None:
    file = Path(__file__).parents[3] / "programs" / "simplified_moe.py"
    with signal_in_call(number, "pygraphviz", "gvLayout", 1) as sent:
        status = main(["graph", str(file), "-o", str(tmp_path / "graph.svg")])

    assert (True, 128 + number) == (sent(), status)
    assert [] == list(tmp_path.iterdir())

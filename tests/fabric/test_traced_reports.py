"""Traces of reports: in the user's folder, or in a temporary one deleted with the report."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from fabric import ConfigurationError, Program, Report, simulate
from fabric.analysis.trace.selection import TraceOptions
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.fabric.small_program import build
from tests.fabric.trace.recording import program

_ROOT: Final = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder, here = tmp_path / "temporary", tmp_path / "here"
    folder.mkdir()
    here.mkdir(mode=0o555)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(here)
    yield folder
    # As root, the tests could write into ``here`` in spite of its mode.
    assert not list(here.iterdir())


class TestTemporary:
    @pytest.mark.deep
    def test_temporary_trace_stays_as_long_as_its_report(self, temporary: Path) -> None:
        report: Report | None = simulate(build(), mode="functional", trace="events")
        assert report is not None
        assert report.log_dir is None
        (folder,) = temporary.iterdir()
        trace = report.trace()
        assert [(6, 3)] == trace.rows("SELECT count(*) + 3, count(*) FROM transfers")
        same = copy.copy(report)
        report = None
        gc.collect()
        assert trace.summary() == same.trace().summary()
        del same
        gc.collect()

        assert not folder.exists()
        assert not list(temporary.iterdir())
        assert 3 == trace.summary().transfers

    def test_temporary_folder_has_only_the_trace(self, temporary: Path) -> None:
        report = simulate(build(), trace="events")
        (folder,) = temporary.iterdir()

        assert ["trace"] == [path.name for path in folder.iterdir()]
        assert str(folder) not in str(report.as_json())
        assert report == simulate(build())
        assert hash(report) == hash(simulate(build()))

    def test_grown_run_has_two_traces(self) -> None:
        report = simulate(
            program("simplified_moe"),
            depths={"reassemble_1.2": 2},
            on_deadlock="grow",
            trace=TraceOptions(),
        )
        assert "completed" == report.status == report.trace().status
        assert "deadlock" == report.trace(first=True).status
        assert report.trace(first=True).deadlock() is not None
        assert report.trace().deadlock() is None

    def test_refused_run_leaves_no_folder(self, temporary: Path) -> None:
        with pytest.raises(ConfigurationError):
            simulate(build(), trace=TraceOptions(nodes="nobody*"))
        gc.collect()
        assert not list(temporary.iterdir())

    def test_pickled_report_does_not_own_the_trace(self) -> None:
        report = simulate(build(), trace="events")
        other = pickle.loads(pickle.dumps(report))
        del other
        gc.collect()
        assert "completed" == report.trace().status

        other = pickle.loads(pickle.dumps(report))
        assert other == report
        del report
        gc.collect()
        with pytest.raises(ConfigurationError, match=r"was removed with .*: expected .* log_dir"):
            other.trace()

    def test_forked_process_keeps_the_trace(self, temporary: Path) -> None:
        script = (
            "import os, sys, fabric\n"
            "from tests.fabric.small_program import build\n"
            "report = fabric.simulate(build(), trace='events')\n"
            "path = report.traced_in.path\n"
            "child = os.fork()\n"
            "if child == 0:\n    sys.exit()\n"
            "os.waitpid(child, 0)\n"
            "print(report.trace().status, path)\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONPATH": str(_ROOT), "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            check=True,
        )
        status, path = ran.stdout.split()
        assert ("completed", "") == (status, ran.stderr)
        assert Path(path).parent == temporary
        assert not list(temporary.iterdir())


class TestKept:
    def test_kept_trace_stays(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        report = simulate(build(), trace="events", log_dir="logs")
        monkeypatch.chdir("/")
        trace = report.trace()
        del report
        gc.collect()

        assert tmp_path / "logs/small-1/trace" == trace.folder
        assert trace.folder.is_dir()

    def test_run_without_a_trace_is_refused(self, tmp_path: Path) -> None:
        report = simulate(build(), log_dir=tmp_path)
        with pytest.raises(
            ConfigurationError, match=r'has no trace: expected a run of .*"events"\)'
        ):
            report.trace()


class TestAtOnce:
    @pytest.mark.parametrize("handles", [False, True])
    def test_trace_inside_asyncio_keeps_its_signals(self, handles: bool) -> None:
        async def cell() -> str:
            loop = asyncio.get_running_loop()
            told = asyncio.Event()
            if handles:
                loop.add_signal_handler(signal.SIGUSR1, told.set)
            report = simulate(program("simplified_moe"), trace="events")
            others = await asyncio.gather(
                *(asyncio.to_thread(simulate, program("swiglu")) for _ in range(2))
            )
            assert 1 == len(set(others))
            if handles:
                os.kill(os.getpid(), signal.SIGUSR1)
                await told.wait()
                loop.remove_signal_handler(signal.SIGUSR1)
            return report.trace().stalls().verdict

        assert asyncio.run(cell()).startswith("Bound by the HBM: ")
        assert -1 == signal.set_wakeup_fd(-1)


def test_names_of_any_characters_are_traced() -> None:
    name = "a/../\0\n\x1b[31m<b>[/red]\u202e"
    with Program(name) as wired:
        LinearOffChipStore(name)(LinearOffChipLoad(np.zeros((1, 32)), (1, 32), name=name)())
    report = simulate(wired, trace="events")
    with report.trace() as trace:
        assert trace.stalls().units[0].name.isprintable()
        assert repr(trace).isprintable()
    assert repr(report).isprintable()
    assert repr(report.outputs).isprintable()
    assert [name] == list(report.outputs)

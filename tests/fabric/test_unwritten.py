from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from fabric import Program, Tile, simulate
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import Ports
from tests.fabric.small_program import NUMBER, Count, Total
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import record
from tests.profiles import spread

_ROOT = Path(__file__).parents[2]
_PROGRAM = str(_ROOT / "tests" / "fabric" / "small_program.py")
_NO_SPACE = "No space left on device"
_TOO_LARGE = "File too large"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk that can be full needs the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _command(
    *arguments: object, largest: int = resource.RLIM_INFINITY, **files: object
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    ran: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, "-m", "fabric", *map(str, arguments)],
        # Python would write a truncated compiled module, and read it in the next run.
        env=os.environ | {"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=files.get("stdout", subprocess.PIPE),  # type: ignore[call-overload]
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    return ran


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wired = chain(("s0", "c3"), ("r0", "c1", "s0"), ("r0", "c7"), elements=2_000)
    return record(wired, tmp_path_factory.mktemp("run"))[1].folder.parent


@dataclass(frozen=True)
class _Counts(Count):
    half_way: Callable[[], None] = print

    @override
    async def run(self, ports: Ports) -> None:
        for number in range(self.stop):
            if number == self.stop // 2:
                self.half_way()
            ports.unit.charge(self.period)
            tile = Tile(1, 1, NUMBER.dtype, np.array([[number]], NUMBER.dtype))
            await ports.sink.send((tile, 0))


def _counting(half_way: Callable[[], None]) -> Program:
    with Program("counting") as program:
        Total("none")(_Counts(100, 1, half_way=half_way)())
    return program


class TestRuns:
    @pytest.mark.deep
    def test_run_on_a_full_disk_continues_without_its_trace(self, small_disk: Path) -> None:
        wired = chain(("s0", "c3"), ("r0", "c1", "s0"), ("r0", "c7"), elements=50_000)
        notices: list[str] = []
        report = simulate(wired, log_dir=small_disk, trace=TraceOptions(), notify=notices.append)

        assert ("completed", 100_000) == (report.status, report.elements)
        trace = Trace(Path(report.log_dir or ""))
        warning, *others = report.warnings
        reason = f"could not be written: {_NO_SPACE}"
        assert re.fullmatch(rf"trace {trace.folder}: (segment|snapshot) \d+ {reason}", warning)
        # The moment at which the disk was full decides whether the log has room.
        assert all(other.endswith(reason) for other in others)
        assert trace.rows("SELECT count(*) FROM units") == [(3,)]
        assert notices == list(report.unwritten) == list(report.warnings)
        assert 4 == report.exit_status
        assert not list(trace.folder.parent.rglob("*.tmp"))

    @pytest.mark.parametrize(
        ("largest", "what"),
        [
            pytest.param(
                4_096,
                r"trace logs/simplified-moe-1/trace: (segment|snapshot) \d+",
                marks=pytest.mark.deep,
            ),
            (512, "logs/small-1: .*"),
        ],
    )
    def test_command_with_unwritten_files_exits_with_4(
        self, largest: int, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        # A segment is large if its waits differ, however often rows are written.
        program = [_PROGRAM]
        if "trace" in what:
            program = [str(_ROOT / "programs" / "simplified_moe.py"), "-p", "tokens=1000"]
            program += ["--mode", "timing", "--trace", "events"]
        ran = _command("run", *program, largest=largest)

        assert (4, True) == (ran.returncode, "\ncompleted" in ran.stdout)
        said = [line for line in ran.stderr.splitlines() if "could not be written" in line]
        expected = re.compile(f"fabric: {what} could not be written: {_TOO_LARGE}")
        assert any(map(expected.fullmatch, said)), said
        assert "Traceback" not in ran.stderr

    @pytest.mark.parametrize(
        ("fault", "status"), spread([("wrong", 1), ("raises", 1), ("stuck", 3)], 1)
    )
    def test_worse_status_wins_over_unwritten_files(
        self, fault: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        ran = _command("run", _PROGRAM, "--mode", "functional", "-p", f"fault={fault}", largest=512)

        assert status == ran.returncode
        assert "could not be written" in ran.stderr

    def test_lost_trace_is_reported_during_the_run(self, tmp_path: Path) -> None:
        notices: list[str] = []
        said = threading.Event()

        def lose_the_trace() -> None:
            (folder,) = tmp_path.glob("*/trace")
            shutil.rmtree(folder)
            assert said.wait(60)

        def notify(sentence: str) -> None:
            notices.append(sentence)
            said.set()

        wired = _counting(lose_the_trace)
        report = simulate(wired, log_dir=tmp_path, trace=TraceOptions(), notify=notify)
        assert ("completed", 4) == (report.status, report.exit_status)
        assert notices == list(report.unwritten)
        (sentence,) = notices
        assert re.search(r"/trace: segment \d+ could not be written: ", sentence)


class TestOutputs:
    @pytest.mark.parametrize(
        ("arguments", "name"),
        spread(
            [
                (("graph", _PROGRAM), "graph.svg"),
                (("trace", "report", "{run}"), "page.html"),
                (("trace", "export", "{run}", "--perfetto"), "run.pftrace"),
                (("trace", "export", "{run}", "--csv"), "run.csv"),
            ],
            1,
        ),
    )
    def test_output_that_does_not_fit_is_removed(
        self, arguments: tuple[str, ...], name: str, run: Path, tmp_path: Path
    ) -> None:
        given = [each.replace("{run}", str(run)) for each in arguments]
        file = tmp_path / name
        ran = _command(*given, "-o", file, largest=100)

        assert (4, "") == (ran.returncode, ran.stdout)
        assert f"fabric: {file}: {_TOO_LARGE}\n" == ran.stderr
        assert not file.exists()


_PRINTING: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("run", _PROGRAM, "--json", "--log-dir", "{logs}")),
    (1, ("run", _PROGRAM, "-p", "fault=wrong", "--mode", "functional", "--log-dir", "{logs}")),
    (3, ("run", _PROGRAM, "-p", "fault=stuck", "--log-dir", "{logs}")),
    (0, ("check", _PROGRAM)),
    (0, ("trace", "query", "{run}", "FROM transfers")),
    (0, ("--help",)),
)


@pytest.mark.parametrize(("status", "arguments"), spread(_PRINTING, 1))
class TestStandardOutput:
    def test_full_standard_output_is_reported(
        self, status: int, arguments: tuple[str, ...], run: Path, tmp_path: Path
    ) -> None:
        given = [each.replace("{run}", str(run)) for each in arguments]
        given = [each.replace("{logs}", str(tmp_path / "logs")) for each in given]
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            ran = _command(*given, stdout=full)

        assert (status or 4) == ran.returncode
        # The library that prints the help names no file.
        assert re.search(f"^fabric: (standard output: )?{_NO_SPACE}$", ran.stderr, re.MULTILINE)
        assert not re.search("Traceback|Exception ignored", ran.stderr)

    def test_closed_standard_output_is_not_an_error(
        self, status: int, arguments: tuple[str, ...], run: Path, tmp_path: Path
    ) -> None:
        if arguments == ("--help",):
            status = 1  # the status of the library that prints the help
        given = [each.replace("{run}", str(run)) for each in arguments]
        given = [each.replace("{logs}", str(tmp_path / "logs")) for each in given]
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            ran = _command(*given, stdout=pipe)

        assert status == ran.returncode
        assert not re.search("Traceback|Exception ignored|roken pipe", ran.stderr)


_SIMPLIFIED_MOE = _ROOT / "programs" / "simplified_moe.py"


@pytest.mark.parametrize(
    ("arguments", "name"),
    spread(
        [
            (("run", _SIMPLIFIED_MOE, "--mode", "functional", "--save"), "y.npz"),
            (("size", _SIMPLIFIED_MOE, "-o"), "depths.toml"),
            (("place", _SIMPLIFIED_MOE, "--hardware", "mesh_paper", "-o"), "sites.toml"),
            (("place", _SIMPLIFIED_MOE, "--hardware", "mesh_paper", "--picture"), "sites.svg"),
            (("rtl", _SIMPLIFIED_MOE, "--hardware", "wires", "-o"), "rtl"),
            (("examples", "simplified_moe", "-o"), "example.py"),
        ],
        1,
    ),
)
def test_full_disk_is_named_with_the_file_and_the_status(
    arguments: tuple[object, ...], name: str, small_disk: Path, run: Path, tmp_path: Path
) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'filler'}"], check=False)
    file = small_disk / name
    logs = ("--log-dir", tmp_path) if arguments[0] == "run" else ()
    ran = _command(*(run if each == "RUN" else each for each in arguments), file, *logs)

    assert ran.stderr.splitlines()[-1] == f"fabric: {file}: {_NO_SPACE}"
    assert ran.returncode == 4
    assert [small_disk / "filler"] == [each for each in small_disk.iterdir() if each.is_file()]


@pytest.mark.deep
@pytest.mark.parametrize(
    "arguments",
    [
        ("size", _SIMPLIFIED_MOE, "-o"),
        ("place", _SIMPLIFIED_MOE, "--hardware", "mesh_paper", "-o"),
    ],
)
def test_a_device_is_written_and_not_replaced(arguments: tuple[object, ...]) -> None:
    leader, follower = os.openpty()
    device = Path(os.ttyname(follower))
    ran = _command(*arguments, device)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert device.is_char_device()
    os.close(follower)
    os.close(leader)

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabric.shell.cli import main

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "programs"
SMALL = """\
import numpy as np
from fabric import Layout, Program
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Partition, Selectors

def build(rows: int = 4, streams: int = 2) -> Program:
    choice = np.arange(rows)[:, np.newaxis] % streams
    with Program("split") as program:
        x = Flatten(0, 1)(LinearOffChipLoad(np.zeros((rows, 32)), (1, 32))())
        routed = Partition(streams)(x, Selectors(choice, streams, name="route")())
        for number, stream in enumerate(routed):
            program.bind(stream.shape[0], int((choice == number).sum()))
            LinearOffChipStore(f"y{number}")(stream)
    return program
"""

FOURS = """\
import numpy as np
from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU

def build() -> Program:
    with Program("fours") as program:
        for number in range(3):
            x = LinearOffChipLoad(np.zeros((2048, 32)), (1, 32))()
            LinearOffChipStore(f"y{number}")(
                Map(SiLU(), name=f"work_{number}")(x))
    return program
"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    status, out, err = run(capsys, "check", "small.py", "--json", *arguments)
    assert (0, "") == (status, err)
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(("program", "columns"), [("small", 100), ("fours", 60)])
def test_check_equals_its_golden_text(
    program: str,
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    Path("fours.py").write_text(FOURS, encoding="utf-8")
    status, out, err = run(capsys, "check", f"{program}.py", "--memory-map")
    assert (0, "") == (status, err)
    assert max(map(len, out.splitlines())) <= columns
    golden(f"check_{program}_{columns}.txt", out)


class TestJson:
    def test_json_has_operators_formulas_and_addresses(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        found = checked(capsys)

        assert ["D_route[0]", "D_route[1]"] == found["free_symbols"]
        partition = found["operators"][3]
        assert ("partition_1", "Partition", 9) == tuple(
            partition[key] for key in ("name", "kind", "line")
        )
        assert "[D_route[0]] of 1x32 bfloat16" == partition["outputs"][0]
        assert partition["layouts"][0]["reason"].startswith("partition_1: data decide")
        paper = found["metrics"]["paper"]
        assert "64*D_route[0] + 64*D_route[1] + 256" == paper["off_chip_traffic_bytes"]
        stored = found["memory_map"][1]
        assert (0x1000, None, "y0") == tuple(
            stored[key] for key in ("first_address", "bytes", "output")
        )

    def test_chosen_size_replaces_its_symbol(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = checked(capsys, "--set", "D_route[0]=3")
        both = checked(capsys, "--data", "--set", "D_route[0]=10")

        assert ["D_route[1]"] == found["free_symbols"]
        assert "64*D_route[1] + 448" == found["metrics"]["paper"]["off_chip_traffic_bytes"]
        assert {"D_route[0]": 10, "D_route[1]": 2} == both["sizes"]
        assert (10 + 2) * 64 + 256 == both["metrics"]["paper"]["off_chip_traffic_bytes"]


class TestRefused:
    def test_unknown_symbol_is_refused_with_the_known_ones(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        status, out, err = run(capsys, "check", "small.py", "--json", "--set", "D_rout[0]=3")
        message = (
            "--set D_rout[0]=3: no stream has such a symbol: expected one of D_route[0], "
            "D_route[1] (did you mean D_route[0]?)"
        )

        assert (2, f"fabric: {message}\n") == (status, err)
        found = json.loads(out)
        assert ("error", message) == (found["status"], found["error"]["message"])
        assert "metrics" not in found

    def test_mean_is_accepted_for_ragged_sizes_only(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = str(PROGRAMS / "ragged_attention.py")
        free = json.loads(run(capsys, "check", file, "--json")[1])["free_symbols"]
        (ragged,) = (name for name in free if name.endswith("~"))

        def moved(*options: str) -> Any:
            found = json.loads(run(capsys, "check", file, "--json", *options)[1])
            return found["metrics"]["paper"]["off_chip_traffic_bytes"]

        assert moved("--set", f"{ragged}=2.5") == moved("--set", f"{ragged}=5/2")
        assert 2 * moved("--set", f"{ragged}=2.5") == moved("--set", f"{ragged}=2") + moved(
            "--set", f"{ragged}=3"
        )
        file = str(PROGRAMS / "simplified_moe.py")
        whole = json.loads(run(capsys, "check", file, "--json")[1])["free_symbols"][0]
        status, _, err = run(capsys, "check", file, "--set", f"{whole}=2.5")
        assert 2 == status
        assert f"--set {whole}=5/2: the dimension has one size: expected an integer" in err


def test_check_of_a_large_layer_makes_no_weights() -> None:
    script = (
        "import sys; from fabric.shell.cli import main;"
        "status = main(sys.argv[1:]);"
        # VmHWM is the peak of this process; getrusage would include the process that forked it.
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0];"
        "print(peak, file=sys.stderr);"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", script, "check", str(PROGRAMS / "moe.py"), "--data"]
    done = subprocess.run(
        [*command, "-p", "model=qwen3-30b-a3b"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )

    assert int(done.stderr) < 500_000  # KiB; the weights are 1.2 GB
    assert "compute cycles of one unit" in done.stdout

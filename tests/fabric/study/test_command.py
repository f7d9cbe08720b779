from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from fabric.shell.cli import main
from tests.docs.warm import folder_of_python

ROOT = Path(__file__).parents[3]
PROGRAM = "tests/fabric/study/program_of_points.py"


def study(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(folder_of_python() / "python"), "-m", "fabric", "study", *arguments]
    if folder is not None:
        command += ["-o", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, check=False, timeout=300
    )


@pytest.mark.deep
def test_study_keeps_failed_points_and_runs_none_twice(tmp_path: Path) -> None:
    vary = [PROGRAM, "--vary", "tiles=1..3", "--vary", "rows=16,3", "--minimize", "cycles"]
    done = study(*vary, "--json", folder=tmp_path / "out")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert [each["status"] for each in found["points"]][1::2] == ["refused"] * 3
    assert found["pareto"] == [0]
    assert found["counts"]["total"] == 6
    assert found["counts"]["failed"] == 3
    assert found["counts"]["run"] + found["counts"]["pruned"] == 6
    assert found["points"][0]["cycles"] > 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html",
        "pictures",
        "points.csv",
        "points.parquet",
        "study.db",
    }
    again = json.loads(study(*vary, "--json", folder=tmp_path / "out").stdout)
    assert again["counts"]["run"] == 0
    assert again["counts"]["resumed"] > 0
    assert [each["status"] for each in again["points"]] == [
        each["status"] for each in found["points"]
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--vary", "rows=3"], 1, "rows is 3: expected an even number"),
        (
            ["--vary", "tiles=1,2", "--minimize", "cycle"],
            2,
            "fabric: --minimize cycle: there is no metric cycle: expected extra.NAME",
        ),
        (["--vary", "tiles=1,2", "--where", "cycle < 3"], 2, "fabric: --where cycle < 3: there is"),
        (["--over", "tiles=1,2", "--minimize", "cycles"], 2, "cycles is a number of one run, and"),
        (["--over", "nobody=1", "--minimize", "mean:cycles"], 2, "takes no parameter nobody"),
        (["--vary", "rows=16", "--over", "rows=8"], 2, "rows is an input and varied: expected one"),
        (
            ["--over", "rows=8,16", "--minimize", "p99:cycles"],
            2,
            "--minimize p99:cycles: there is no statistic p99: expected one of mean:cycles",
        ),
        (
            ["--over", "rows=8,16", "--minimize", "mean:cycles", "--hold-out", "2"],
            2,
            "of 2 inputs: expected 0 to 1, to keep at least one",
        ),
        (
            [
                *("--over", "rows=8,16", "--minimize", "mean:cycles"),
                *("--search", "tpe", "--points", "1"),
            ],
            2,
            "a search draws designs of one run each: expected no inputs (--over), or no --search",
        ),
        (["--vary", "tiles=1", "--search", "tpe"], 2, "expected --points N"),
        (["--vary", "tiles=1", "--jobs", "2", "--dask", "x"], 2, "expected one of the two"),
        (["--vary", "tiles=1", "--where", "flops > 2", "--where", "flops < 1"], 2, "contradict"),
    ],
)
def test_study_with_wrong_options_is_refused(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", str(ROOT / PROGRAM), *arguments]
    assert main(command) == status
    assert said in " ".join("".join(capsys.readouterr()).split())
    assert main([*command, "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    if status == 2:
        assert said.removeprefix("fabric: ") in found["error"]["message"]
        assert "points" not in found


_CLOCK = "hardware.clock.frequency_hz"


@pytest.mark.parametrize(
    ("options", "points"),
    [
        (["--vary", f"{_CLOCK}=1e9,2000000000,1000000000.0"], [10**9, 2 * 10**9]),
        (["--vary", f"{_CLOCK}=2.5e9,25e8"], [2_500_000_000]),
        (["--vary", "tiles=1e0,1,2.0,+2"], [1, 2]),
        (["--vary", "depth.map.0=2e0,2"], [2]),
        (["--vary", "hop.map.0=1e0+2,1+02"], ["1+2"]),
        (["--over", "rows=16.0,1.6e1", "--minimize", "worst:cycles"], [16]),
        (["--vary", "tiles=1", "-p", "rows=1.6e1", "-p", f"{_CLOCK}=1e9"], [1]),
        (["--vary", "tiles=1e0..2"], [1, 2]),
        (["--vary", "tiles=0.5,1"], "parameter tiles of build() is '0.5': expected int"),
        (["--vary", "tiles=1", "-p", "rows=1e-1"], "parameter rows of build() is '1e-1'"),
        (["--over", "tiles=x,1", "--minimize", "worst:cycles"], "is 'x': expected int"),
        (["--vary", f"{_CLOCK}=0.5,0.50,1e9"], "frequency_hz is 0.5: expected a number from 1"),
        (["--vary", "hardware.hbm.channels=8,many"], "channels is 'many': expected"),
        (["--vary", "depth.map.0=0,2"], "depth.map.0 is 0: expected an integer of at least 1"),
        (["--vary", "hop.map.0=1+1,1.5+1"], "'1.5+1': expected cycles forward and back"),
    ],
)
def test_equal_numbers_of_options_are_one_point(
    options: list[str], points: list[object] | str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["study", str(ROOT / PROGRAM), *options, "--jobs", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    if isinstance(points, str):
        assert status == 2
        assert points in found["error"]["message"]
        return
    assert status == 0
    rows = [each["runs"][0] if "runs" in each else each for each in found["points"]]
    assert [*dict.fromkeys([*each["setting"].values()][-1] for each in rows)] == points


@pytest.mark.parametrize("command", ["run", "check", "size"])
def test_options_of_other_commands_are_read_as_numbers(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-p", "tiles=1e0", "-p", "rows=+16"]
    arguments += ["--depth", "map.0=2e0"] if command in ("run", "size") else []
    arguments += ["--hop", "map.0=1e0+02"] if command in ("run", "size") else []
    arguments += ["--livelock-cycles", "1e6"] if command != "check" else []
    arguments += ["--step", "1e2", "--repeat", "1.0"] if command == "size" else []
    assert main([command, str(ROOT / PROGRAM), *arguments]) == 0
    capsys.readouterr()
    assert main([command, str(ROOT / PROGRAM), "-p", "tiles=1.5"]) == 2


@pytest.mark.deep
def test_studies_with_one_name_are_refused(tmp_path: Path) -> None:
    text = (
        "from pathlib import Path\nfrom fabric import *; from fabric.extend import *\n"
        f"def study(): return Study(program=Path({PROGRAM!r}), space=grid(tiles=[1]))\n"
    )
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(text, encoding="utf-8")
    done = study(*(str(tmp_path / name / "same.py") for name in ("a", "b")))
    assert done.returncode == 2
    assert "study same is in" in done.stderr

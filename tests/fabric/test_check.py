"""The command ``check``: its text on narrow terminals, its JSON, its messages, what it imports."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fabric import Layout, Program
from fabric.analysis.symbolic.check import check
from fabric.shell.cli import main
from fabric.shell.wiring_table import print_check
from operators import LinearOffChipLoad, LinearOffChipStore

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
SMALL_TEXT = """\
split  small.py
6 operators, 5 channels, not run

linear_off_chip_load_1  LinearOffChipLoad  small.py:8
  out [1, 4, 1] of 1x32 bfloat16
flatten_1  Flatten  small.py:8
  in  [1, 4, 1] of 1x32 bfloat16
  out [1, 4] of 1x32 bfloat16
route  Selectors  small.py:9
  out [1, 4] of selector of 2
partition_1  Partition  small.py:9
  in  [1, 4] of 1x32 bfloat16
  in  [1, 4] of selector of 2
  out [D_route[0..1]] of 1x32 bfloat16 (x2)
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
FOURS_TEXT = """\
fours  fours.py
9 operators, 6 channels, not run

linear_off_chip_load_1..3 x3  LinearOffChipLoad
    fours.py:8
  out [1, 2048, 1] of 1x32 bfloat16
work_0..2 x3  Map(SiLU)  fours.py:10
  in  [1, 2048, 1] of 1x32 bfloat16
  out [1, 2048, 1] of 1x32 bfloat16
linear_off_chip_store_1..3 x3  LinearOffChipStore
    fours.py:9
  in  [1, 2048, 1] of 1x32 bfloat16

                               paper  artifact
off-chip traffic, bytes      786,432 1,179,648
  loads                      393,216   393,216
  stores                     393,216   786,432
on-chip requirement, bytes       768       576
  with FIFOs                   1,536     1,344
cycles at the HBM's peak         768     1,152
FLOPs                      1,572,864 1,572,864
FLOPs per byte                   2.0      1.33
cycles of the busiest unit     2,048     2,048
allocated FLOPs per cycle     12,288    12,288

most on chip (paper): linear_off_chip_load_1..3 x3
  384 bytes, 50 %, fours.py:8; 1 more needs as much
of one operator: linear_off_chip_load_1
  128 bytes, fours.py:8
"""

LAYOUT_TEXT = """
        address   bytes  tensor
            0x0     256  linear_off_chip_load_1  [4, 32]
    bfloat16
         0x1000 by data  y0 of linear_off_chip_store_1
    [1, 32*D_route[0]] bfloat16
0x4000000001000 by data  y1 of linear_off_chip_store_2
    [1, 32*D_route[1]] bfloat16
Each begins at a multiple of 4,096 bytes.
"""

PLACED_TEXT = """
        address   bytes  tensor
            0x0     256  linear_off_chip_load_1  [4, 32]
    bfloat16, tiles of 1x32 one behind the other
          0x280 by data  y0 of linear_off_chip_store_1
    [1, 32*D_route[0]] bfloat16, row-major: its operator
    names bytes, not tiles
0x4000000000300 by data  y1 of linear_off_chip_store_2
    [1, 32*D_route[1]] bfloat16, row-major: its operator
    names bytes, not tiles
Each begins at a multiple of 512 bytes, and 128 further for
each before it.
"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of its own, with a small program in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    status = main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The object of a check."""
    status, out, err = run(capsys, "check", "small.py", "--json", *arguments)
    assert (0, "") == (status, err)
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    ("count", "more"),
    [(30, ""), (31, "and 1 more warning: --json"), (40, "and 10 more warnings: --json")],
)
def test_many_warnings(count: int, more: str) -> None:
    """Thirty are printed, and the others counted; a layout that is stated is with its stream."""
    with Program("p") as program:
        tiles = LinearOffChipLoad(np.ones((32, 32), np.float32), (16, 32))()
        LinearOffChipStore("y")(tiles.laid_out(Layout.tiled((32, 32), (16, 32))))
    console = Console(file=io.StringIO(), width=60)
    warnings = tuple(f"number {number}" for number in range(count))
    print_check(replace(check(program, {}, data=False), warnings=warnings), "p.py", console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [f"warning: number {number}" for number in range(30)] + [more] * bool(more) == (
        lines[-30 - bool(more) :]
    )
    assert 1 == sum(line.startswith("  laid out ") for line in lines)


class TestText:
    def test_symbols(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Shapes, formulas and the symbols that are left; two alike stores are one."""
        status, out, err = run(capsys, "check", "small.py")

        assert (0, "") == (status, err)
        assert out.startswith(SMALL_TEXT)
        assert (
            "linear_off_chip_store_1..2 x2  LinearOffChipStore\n"
            "    small.py:12\n"
            "  in  [D_route[0..1]] of 1x32 bfloat16\n"
        ) in out
        assert (
            "stores =\n"
            "  paper     64*D_route[0] + 64*D_route[1]\n"
            "  artifact  128*D_route[0] + 128*D_route[1]\n"
        ) in out
        assert (
            "2 symbols: --set NAME=VALUE; the program's data decide 2\n"
            "  of them: --data\n"
            "  D_route[0..1]\n"
        ) in out

    def test_numbers(self, capsys: pytest.CaptureFixture[str]) -> None:
        """With sizes there are numbers, within 60 columns, and who needs most on chip."""
        status, out, _ = run(capsys, "check", "small.py", "--data")

        metrics = out[out.index("                          paper") :]
        assert 0 == status
        assert max(map(len, metrics.splitlines())) <= 60
        assert (
            "                           paper artifact\n"
            "off-chip traffic, bytes      512      768\n"
            "  loads                      256      256\n"
            "  stores                     256      512\n"
            "on-chip requirement, bytes   384      320\n"
        ) in out
        assert (
            "most on chip (paper): linear_off_chip_store_1..2 x2\n"
            "  256 bytes, 67 %, small.py:12\n"
            "of one operator: linear_off_chip_load_1\n"
            "  128 bytes, small.py:8\n"
        ) in out

    def test_whole(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        """All that is printed of four loads and stores whose bytes are known; ties are counted."""
        (tmp_path / "fours.py").write_text(FOURS, encoding="utf-8")
        status, out, err = run(capsys, "check", "fours.py")
        assert (0, "") == (status, err)
        assert FOURS_TEXT == out

    def test_lines_that_do_not_fit(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A narrow terminal gets them in parts, broken between words; others get them whole."""
        monkeypatch.setenv("COLUMNS", "40")
        _, narrow, _ = run(capsys, "check", "small.py")
        monkeypatch.setenv("COLUMNS", "100")
        _, wide, _ = run(capsys, "check", "small.py")
        monkeypatch.delenv("COLUMNS")
        _, piped, _ = run(capsys, "check", "small.py")

        assert wide == piped
        assert max(map(len, narrow.splitlines())) <= 40
        assert (
            "linear_off_chip_store_1..2 x2\n"
            "    LinearOffChipStore  small.py:12\n"
            "  in  [D_route[0..1]] of 1x32\n"
            "      bfloat16\n"
        ) in narrow
        assert ("  artifact  128*D_route[0] +\n            128*D_route[1]\n") in narrow
        wiring = narrow.split()[: narrow.split().index("paper")]
        assert wiring == wide.split()[: len(wiring)]

    def test_one_program_one_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Two checks print the same."""
        assert run(capsys, "check", "small.py") == run(capsys, "check", "small.py")


class TestJson:
    def test_fields(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Operators with types and places; metrics as text where symbols remain."""
        found = checked(capsys)

        assert [
            "program",
            "parameters",
            "hardware",
            "status",
            "operators",
            "metrics",
            "free_symbols",
            "sizes",
            "memory_map",
            "warnings",
            "error",
        ] == list(found)
        assert ["D_route[0]", "D_route[1]"] == found["free_symbols"]
        partition = found["operators"][3]
        assert {
            "name": "partition_1",
            "kind": "Partition",
            "inputs": ["[1, 4] of 1x32 bfloat16", "[1, 4] of selector of 2"],
            "outputs": ["[D_route[0]] of 1x32 bfloat16", "[D_route[1]] of 1x32 bfloat16"],
            "layouts": 2
            * [
                {
                    "layout": None,
                    "reason": "partition_1: data decide which of its tiles come where",
                }
            ],
            "tile": "1x32 bfloat16",
            "file": "small.py",
            "line": 9,
        }.items() <= partition.items()
        assert {
            "off_chip_traffic_bytes": "64*D_route[0] + 64*D_route[1] + 256",
            "on_chip_requirement_bytes": 384,
        }.items() <= found["metrics"]["paper"].items()
        assert 320 == found["metrics"]["artifact"]["on_chip_requirement_bytes"]

    def test_layouts(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Which tiles of its tensor a load gives, in which order."""
        load = next(each for each in checked(capsys)["operators"] if "Load" in each["kind"])
        layout = "4x32 in tiles of 1x32, [4, 1] steps [1, 1] -> (0, -)"
        assert [{"layout": layout, "reason": None}] == load["layouts"]

    def test_memory_map(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Where each tensor is, and who reads or writes it; what data decide is last."""
        found = checked(capsys)["memory_map"]
        _, out, _ = run(capsys, "check", "small.py", "--memory-map")

        assert out.endswith(LAYOUT_TEXT)
        assert [0x0, 0x1000, 0x4000000001000] == [each["first_address"] for each in found]
        assert found[1] == {
            "first_address": 0x1000,
            "bytes": None,
            "dtype": "bfloat16",
            "shape": [1, "32*D_route[0]"],
            "output": "y0",
            "tiles": "row-major",
            "row_padding_bytes": 0,
            "reason": None,
            "operators": ["linear_off_chip_store_1"],
        }

    def test_placement(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Where tensors begin, and which of them are not row-major, or had to stay so."""
        placement = 'tiles = "contiguous"\nstagger_bytes = 128\nalignment_bytes = 512'
        Path("placed.toml").write_text(f"[placement]\n{placement}", encoding="utf-8")
        found = checked(capsys, "--hardware", "placed.toml")["memory_map"]
        _, out, _ = run(capsys, "check", "small.py", "--memory-map", "--hardware", "placed.toml")

        assert out.endswith(PLACED_TEXT)
        assert [0, 512 + 128] == [each["first_address"] for each in found[:2]]
        assert ("contiguous", None) == (found[0]["tiles"], found[0]["reason"])
        assert ("row-major", 0) == (found[1]["tiles"], found[1]["row_padding_bytes"])
        assert found[1]["reason"] == "its operator names bytes, not tiles"

    def test_set(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A chosen size replaces its symbol, and counts more than the program's own."""
        found = checked(capsys, "--set", "D_route[0]=3")
        both = checked(capsys, "--data", "--set", "D_route[0]=10")

        assert ["D_route[1]"] == found["free_symbols"]
        assert "64*D_route[1] + 448" == found["metrics"]["paper"]["off_chip_traffic_bytes"]
        assert {"D_route[0]": 10, "D_route[1]": 2} == both["sizes"]
        assert (10 + 2) * 64 + 256 == both["metrics"]["paper"]["off_chip_traffic_bytes"]

    def test_parameters_and_hardware(self, capsys: pytest.CaptureFixture[str]) -> None:
        """As for ``run``."""
        Path("fabric.toml").write_text('[tile]\ndtype = "float32"\n', encoding="utf-8")
        found = checked(capsys, "-p", "rows=6", "--data", "--hardware", "fabric.toml")

        assert {"rows": 6, "streams": 2} == found["parameters"]
        assert 2 * 6 * 128 == found["metrics"]["paper"]["off_chip_traffic_bytes"]


class TestRefused:
    def test_unknown_symbol(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The message names what there is; the object has the error."""
        status, out, err = run(capsys, "check", "small.py", "--json", "--set", "D_rout[0]=3")
        message = (
            "--set D_rout[0]=3: no stream has such a symbol: expected one of D_route[0], "
            "D_route[1] (did you mean D_route[0]?)"
        )

        assert (2, f"fabric: {message}\n") == (status, err)
        found = json.loads(out)
        assert ("error", None, message) == (
            found["status"],
            found["metrics"],
            found["error"]["message"],
        )

    @pytest.mark.parametrize("streams", [8, 9])
    def test_many_symbols(self, capsys: pytest.CaptureFixture[str], streams: int) -> None:
        """Eight symbols are named, and of more the first eight."""
        given = ("-p", f"streams={streams}", "--set", "X=3")
        status, _, err = run(capsys, "check", "small.py", *given)
        named = ", ".join(f"D_route[{number}]" for number in range(8))

        assert 2 == status
        assert f"expected one of {named}{', ...' if streams > 8 else ''}\n" in err

    def test_symbols_of_one_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Of a name that there is the numbers that it has are named, and no other name."""
        other = "Partition(streams)(x, Selectors(choice, streams, name='other')())"
        two = SMALL.replace("enumerate(routed)", f"enumerate([*routed, *{other}])")
        Path("small.py").write_text(two, encoding="utf-8")
        status, _, err = run(capsys, "check", "small.py", "--set", "D_route[2]=3")

        assert 2 == status
        assert "expected one of D_route[0], D_route[1] (did you mean " in err

    def test_no_symbols(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A static program has nothing to set."""
        status, _, err = run(capsys, "check", str(PROGRAMS / "swiglu.py"), "--set", "D=3")

        assert 2 == status
        assert (
            "fabric: --set D=3: no stream has such a symbol: expected none, all is static\n"
        ) == err

    @pytest.mark.parametrize("given", ["D_route[0]", "D_route[0]=x", "=3", "D_route[0]=-1"])
    def test_usage(self, capsys: pytest.CaptureFixture[str], given: str) -> None:
        """Only SYMBOL=VALUE is understood."""
        status, _, err = run(capsys, "check", "small.py", "--set", given)

        assert 2 == status
        assert (
            f"{given!r}: expected SYMBOL=VALUE with VALUE at least 0: an integer, or of a symbol "
            "with ~ the mean, as in 17/6 or 2.5\n"
        ) in err

    def test_mean_of_a_ragged_size(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A ragged size is given as the mean of its groups; another one is an integer."""
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

    def test_shape_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A program that cannot be wired exits with 2, at the line."""
        Path("wrong.py").write_text(SMALL.replace("Flatten(0, 1)", "Flatten(0, 9)"))
        status, out, err = run(capsys, "check", "wrong.py")

        assert (2, "") == (status, out)
        assert (
            "fabric: wrong.py:8: Flatten merges dimensions 0 to 9 of linear_off_chip_load_1.0 "
            "[1, 4, 1] of 1x32 bfloat16: expected 0 <= inner < outer <= 2\n"
        ) == err


def imported(*arguments: str) -> set[str]:
    """Which of the slow modules a command imports."""
    script = (
        "import sys; from fabric.shell.cli import main; main(sys.argv[1:]);"
        "slow = {'sympy', 'networkx', 'numba', 'duckdb'};"
        "print(*slow.intersection(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    return set(done.stderr.splitlines()[-1].split())


class TestImports:
    @pytest.mark.parametrize("command", [["--help"], ["check", "--help"], ["graph", "--help"]])
    def test_help(self, command: list[str]) -> None:
        """Help needs none of the slow modules."""
        assert set() == imported(*command)

    def test_static(self, tmp_path: Path) -> None:
        """A program without symbols never imports sympy: neither checked, drawn nor run."""
        program = str(PROGRAMS / "swiglu.py")

        assert set() == imported("check", program)
        assert set() == imported("graph", program, "-o", str(tmp_path / "x.svg"))
        assert "sympy" not in imported("run", program, "--mode", "timing")

    def test_symbolic(self) -> None:
        """One with symbols does to show them; a run shows none."""
        program = str(PROGRAMS / "simplified_moe.py")

        assert {"sympy"} == imported("check", program)
        assert set() == imported("run", program)


def test_no_weight_is_made() -> None:
    """A whole layer is checked within memory that its weights would not fit in."""
    script = (
        "import sys; from fabric.shell.cli import main;"
        "status = main(sys.argv[1:]);"
        # Since it began: what getrusage says counts the process that it was forked from.
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
    assert "cycles of the busiest unit" in done.stdout

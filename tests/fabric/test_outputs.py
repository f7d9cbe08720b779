from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from typing_extensions import override

from fabric import ConfigurationError, Outputs, Program, Stream, StreamType, simulate
from fabric.extend import OutputShape, Ports
from fabric.graph.values.dims import symbol
from fabric.shell.cli import main
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Reshape
from tests.fabric.small_program import Count, Total
from tests.fabric.trace.recording import PROGRAMS, program
from tests.operators.driving import FLOAT, Emit, encode, tile
from tests.profiles import spread

ROOT = Path(__file__).parents[2]
MOE = str(ROOT / "programs" / "simplified_moe.py")
_GROUPS = [[0, 1, 2, 3, 4], [5], [6, 7]]
SMALL = str(ROOT / "tests" / "fabric" / "small_program.py")


def copied(x: np.ndarray, name: str = "y") -> Program:
    with Program("copy", mode="functional") as wired:
        LinearOffChipStore(name)(LinearOffChipLoad(x, (1, x.shape[1]))())
    return wired


@dataclass(frozen=True)
class _Keeps(Total):
    what: Any = None

    @override
    async def run(self, ports: Ports) -> None:
        while await ports.source.receive() is not None:
            pass
        ports.stored["kept"] = self.what


def keeping(what: object) -> Program:
    with Program("keeping", mode="functional") as wired:
        _Keeps("none", what=what)(Count(2, 1)())
    return wired


class TestArrays:
    def test_stored_array_is_read_only(self) -> None:
        x = np.arange(64, dtype=np.float32).reshape(2, 32)
        y = simulate(copied(x)).outputs["y"]

        assert isinstance(y, np.ndarray)
        assert x.tobytes() == y.astype(np.float32).tobytes()
        with pytest.raises(ValueError, match="read-only"):
            y[0, 0] = 1

    def test_stored_list_is_an_object_array(self) -> None:
        report = simulate(keeping([[1, 2], [3]]))
        kept = report.outputs["kept"]

        assert ("completed", ()) == (report.status, kept.shape)
        assert [[1, 2], [3]] == np.asarray(kept)[()]
        assert report == simulate(keeping([[1, 2], [3]]))
        assert report != simulate(keeping([[1, 2], [4]]))

    @pytest.mark.parametrize(("fault", "status"), [("raises", "error"), ("stuck", "deadlock")])
    def test_stopped_run_has_no_outputs(self, fault: Any, status: str) -> None:
        from tests.fabric.small_program import build

        report = simulate(build(fault=fault), mode="functional")
        assert (status, Outputs({})) == (report.status, report.outputs)


def _rows() -> Stream:
    groups = encode([[tile(number) for number in group] for group in _GROUPS], 2)
    return Emit(StreamType((3, symbol("n", ragged=True)), FLOAT), groups)()


def _deciding() -> Program:
    matrix = encode([[tile(0) for _ in range(3)] for _ in range(2)], 2)
    with Program("ragged") as wired:
        rows = _rows()
        LinearOffChipStore("all")(Flatten(0, 1)(rows))
        padded, _ = Reshape(2, pad=0.0)(rows)
        LinearOffChipStore("padded")(Flatten(1, 2)(padded))
        LinearOffChipStore("told")(Emit(StreamType((symbol("a"), symbol("b")), FLOAT), matrix)())
    return wired


class TestShapes:
    @pytest.mark.parametrize("name", spread(PROGRAMS, 2))
    def test_shapes_of_timing_mode_equal_functional_mode(self, name: str) -> None:
        arrays = simulate(program(name), mode="functional").outputs
        shapes = simulate(program(name), mode="timing").outputs

        assert list(arrays) == list(shapes)
        for output, array in arrays.items():
            assert OutputShape(array.shape, array.dtype) == shapes[output]

    def test_sizes_that_data_decide_are_counted(self) -> None:
        arrays, shapes = (
            simulate(_deciding(), mode=mode).outputs for mode in ("functional", "timing")
        )
        assert {"all": (1, 8), "padded": (5, 2), "told": (2, 3)} == {
            name: each.shape for name, each in arrays.items()
        }
        assert {"all": (1, 8), "padded": (5, 2), "told": (None, None)} == {
            name: each.shape for name, each in shapes.items()
        }
        assert "'told': [?, ?] of float32" in repr(shapes)


class TestSave:
    @pytest.mark.parametrize(
        ("dtype", "saved"),
        [
            (ml_dtypes.bfloat16, np.float32),
            (ml_dtypes.int4, np.int8),
            (">i8", ">i8"),
        ],
    )
    def test_saved_types_are_read_by_numpy_alone(
        self, dtype: Any, saved: Any, tmp_path: Path
    ) -> None:
        x = np.array([[0, 1, 3], [2, 1, 0]]).astype(dtype)
        file = tmp_path / "y.npz"
        Outputs({"y": x}).save(file)

        found = subprocess.run(
            [sys.executable, "-c", _READ, file], capture_output=True, text=True, check=True
        )
        assert f"['y'] {np.dtype(saved)} {x.astype(np.float64).tolist()}\n" == found.stdout

    @pytest.mark.parametrize(
        ("name", "seen"),
        [
            ("file", "file"),
            ("arr_0.npy", "arr_0.npy"),
            ("\u03b1 \U0001f600", "\u03b1 \U0001f600"),
            ("a\0b\n", "a\\x00b\\n"),
            ("\ud800", "\\ud800"),
        ],
    )
    def test_any_name_can_be_saved(self, name: str, seen: str, tmp_path: Path) -> None:
        file = tmp_path / "y.npz"
        simulate(copied(np.ones((1, 32)), name)).outputs.save(file)

        with np.load(file) as found:
            assert [seen] == found.files
            assert (1, 32) == found[seen].shape

    @pytest.mark.parametrize("names", [("y", "y.npy"), ("y.npy", "y"), ("a\n", "a\\n")])
    def test_two_names_of_one_file_entry_are_refused(
        self, names: tuple[str, str], tmp_path: Path
    ) -> None:
        file = tmp_path / "y.npz"
        with pytest.raises(ConfigurationError, match="have one name in a file of numpy"):
            Outputs(dict.fromkeys(names, np.ones(1))).save(file)
        assert not file.exists()

    def test_objects_are_not_saved(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="'kept' is an array of objects: expected an"):
            simulate(keeping([[1], []])).outputs.save(tmp_path / "y.npz")
        with pytest.raises(ConfigurationError, match=r"y\.npz is not written: the run has no outp"):
            Outputs({}).save(tmp_path / "y.npz")


_READ = """
import sys, numpy
found = numpy.load(sys.argv[1])
print(found.files, found["y"].dtype, found["y"].astype(float).tolist())
"""


class TestCommand:
    def test_run_saves_the_arrays_of_the_report(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        ran = main(["run", MOE, "--save", "y.npz"])

        assert 0 == ran
        expected = np.asarray(simulate(program("simplified_moe")).outputs["y"], np.float32)
        assert np.array_equal(expected, np.load("y.npz")["y"])

    @pytest.mark.parametrize(
        ("options", "status", "message"),
        [
            (["--mode", "timing"], 2, "--save y.npz: timing mode has no data: expected --mode"),
            (["--save", "no/y.npz"], 4, "fabric: no/y.npz: No such file or directory"),
            (["--save", "/dev/full"], 4, "fabric: /dev/full: No space left on device"),
            (
                ["--depth", "reassemble_1.2=2"],
                3,
                "fabric: y.npz is not written: the run has no outputs: expected a completed run",
            ),
            (["--save", "."], 2, "'--save': File '.' is a directory."),
        ],
    )
    def test_save_without_data_is_refused(
        self,
        options: list[str],
        status: int,
        message: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert status == main(["run", MOE, "--save", "y.npz", *options])
        out, err = capfd.readouterr()
        assert message in err
        assert (status == 2) == (not out)
        assert not list(tmp_path.glob("**/*.npz"))

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fabric
from fabric import FabricError, Report

CELL = """
from tests.fabric.small_program import build as small
def build(stop: int = 3):
    return small(stop)
"""


class Cell:
    error: Exception | None = None

    def raise_error(self) -> None:
        if self.error is not None:
            raise self.error


class Shell:
    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[tuple[str, str], Callable[[str, str], Report | None]] = {}
        vars(fabric)["load_ipython_extension"](self)

    def register_magic_function(
        self, function: Callable[[str, str], Any], magic_kind: str, magic_name: str
    ) -> None:
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, raw_cell: str) -> Cell:
        done = Cell()
        try:
            exec(compile(raw_cell, "<cell>", "exec"), self.user_ns)
        except Exception as error:  # noqa: BLE001 - as a notebook does
            done.error = error
        return done

    def magic(self, line: str, cell: str) -> Report | None:
        return self.magics["cell", "fabric"](line, cell)


def test_cell_with_build_is_run_with_its_options() -> None:
    report = Shell().magic("-p stop=5 --mode functional --depth total_1.0=4", CELL)
    assert report is not None
    assert (report.cycles, report.verified, report.parameters) == (51, True, {"stop": 5})
    assert report.channels_counters[0].depth == 4


def test_cell_that_wires_a_program_is_run() -> None:
    shell = Shell()
    for stop in (4, 6):
        report = shell.magic("", f"{CELL}\nprogram = build({stop})\ndel build, small")
        assert report is not None
        assert report.cycles == 10 * stop + 1


def test_cell_that_fails_has_no_report() -> None:
    assert Shell().magic("", "1 / 0") is None


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("", "x = 3", "the cell has made 0 programs: expected build"),
        ("", f"{CELL}\na, b = build(), build()\ndel build", "the cell has made 2 programs"),
        ("-p stop=3", f"{CELL}\na = build()\ndel build", "the cell defines no build"),
        ("-p stp=3", CELL, r"did you mean stop\?"),
        ("--mode fast", CELL, "'fast' is not one of"),
        ("-p 'stop=3", CELL, "%%fabric -p 'stop=3: No closing quotation"),
        ("--nonsense", CELL, "%%fabric --nonsense: No such option '--nonsense'"),
        ("--depth x.0=3", CELL, "no channel has that name"),
    ],
)
def test_magic_refuses_mistakes(line: str, cell: str, said: str) -> None:
    with pytest.raises(FabricError, match=said):
        Shell().magic(line, cell)


def test_ipython_finds_the_extension() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.extension_manager.load_extension("fabric")
    report = shell.run_cell_magic("fabric", "-p stop=5", CELL)
    assert report.cycles == 51

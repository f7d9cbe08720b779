"""SwiGLU in pieces: work and traffic are those of tiles, and what cannot be lowered is named."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from fabric import Program, ProgramError, simulate
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from operators.pieces.lowering import in_pieces
from tests.programs.loading import program as loaded

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "pages" / "reference" / "cycles.md"


def _built(hardware: str, **sizes: Any) -> Program:
    return loaded("swiglu", f"{hardware}.toml", **sizes)


@pytest.mark.parametrize("sizes", [(16, 16), (32, 32), (64, 64), (16, 128)])
@pytest.mark.parametrize("memory", ["hdl_ideal", "hdl_as_run"])
def test_traffic_and_flops_are_those_of_tiles(memory: str, sizes: tuple[int, int]) -> None:
    """Both engines give one report, and no piece is lost or read twice."""
    tile = {"tile_batch": sizes[0], "tile_inter": sizes[1]}
    program = _built(memory, batch=64, hidden=64, inter=128, **tile)
    tiles = simulate(program, mode="timing")
    pieces = simulate(in_pieces(program, 16, 16), engine="compiled")
    tasks = simulate(in_pieces(program, 16, 16), engine="tasks")
    assert pieces.status == "completed"
    assert (pieces.flops, pieces.off_chip_traffic_bytes) == (
        tiles.flops,
        tiles.off_chip_traffic_bytes,
    )
    assert pieces.cycles == tasks.cycles


def test_what_cannot_be_lowered_is_named() -> None:
    """The message says who and what, and where in the user's file."""
    with Program("copy") as program:
        LinearOffChipStore("y", name="kept")(LinearOffChipLoad(Tensor((32, 32)), (16, 16))())
    with pytest.raises(ProgramError, match="kept: a load in front of it cannot be lowered") as told:
        in_pieces(program, 16, 16)
    assert told.value.file == __file__


def test_pieces_divide_tiles() -> None:
    """A tile of no whole pieces is refused."""
    with pytest.raises(ProgramError, match="a tile of 8x256 cannot be lowered"):
        in_pieces(_built("paper", tile_batch=8), 16, 16)


def _stated() -> dict[tuple[int, int], list[str]]:
    """Return the cells of the documentation's table by rows and columns of a tile."""
    rows = re.findall(r"^\| (\d+) x (\d+) \| (.*) \|$", _PAGE.read_text("utf-8"), re.MULTILINE)
    return {(int(a), int(b)): cells.replace(",", "").split(" | ") for a, b, cells in rows}


_STATED = _stated()


@pytest.mark.parametrize(
    "tile", [(64, 64), *(pytest.param(each, marks=pytest.mark.deep) for each in list(_STATED)[:-1])]
)
def test_beside_the_hdl(tile: tuple[int, int]) -> None:
    """The documentation says how far the pieces are off (cycles.csv: the paper's HDL, its runs)."""
    with (_ROOT / "tests" / "hdl" / "cycles.csv").open(encoding="utf-8") as file:
        counted = {
            (int(row["tile_batch"]), int(row["tile_inter"])): (
                int(row["hdl_cycles_ideal_memory"]),
                int(row["hdl_cycles"]),
            )
            for row in csv.DictReader(file)
        }
    assert counted.keys() == _STATED.keys()
    cells = iter(_STATED[tile])
    for memory, hdl in zip(("hdl_ideal", "hdl_as_run"), counted[tile], strict=True):
        program = _built(memory, tile_batch=tile[0], tile_inter=tile[1])
        cycles = simulate(in_pieces(program, 16, 16), mode="timing").cycles
        assert cycles is not None
        off = f"{100 * (cycles / hdl - 1):.1f} %".replace("-0.0", "0.0")
        assert [str(cycles), str(hdl), off] == [next(cells) for _ in range(3)]

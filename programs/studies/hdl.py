"""Compare the paper's hardware with programs in tiles and in pieces, on the hardware's memory.

Run: python -m fabric study programs/studies/hdl.py -o hdl
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from matplotlib.figure import Figure
from paper import camera_ready
from paper.drawing import COLOURS, found, named
from paper.published import Published, known
from paper.tables import PROGRAMS

from fabric import Findings, Picture, Study, StudyTable, geometric, grid


def _cycles(values: Iterable[Published]) -> dict[tuple[int, int], int]:
    """Return cycles by rows and columns of a tile."""
    return {
        (int(each.setting["tile_batch"]), int(each.setting["tile_inter"])): each.value
        for each in values
        if each.metric == "cycles"
    }


PRINTED = _cycles(camera_ready.hdl())
SIMULATED = _cycles(camera_ready.swiglu())
WAYS = {"in tiles": 0, "in pieces": 16}


def study() -> Study:
    return Study(
        program=PROGRAMS / "swiglu_in_pieces.py",
        hardware=PROGRAMS / "hardware/hdl_as_run.toml",
        question="Do programs in tiles and in pieces take the cycles of the paper's hardware?",
        space=grid(tile_batch=(16, 32, 64), tile_inter=geometric(16, 256), pieces=(0, 16)),
        known=tuple(
            replace(each, setting={**each.setting, "pieces": 16})
            for each in known(camera_ready.hdl())
            if each.metric == "cycles"
        ),
        tables=(
            StudyTable(
                "Cycles and the hardware's cycles",
                ("tile", "hardware", "authors' simulator", *WAYS),
                beside,
                "Cycles, with the error in brackets. The hardware's cycles are known for seven of "
                "the fifteen points of figure 8.",
            ),
        ),
        pictures=(
            Picture(
                "hdl",
                "Cycles beside the hardware's",
                draw,
                "A tiling is (rows, columns). An error of 0 % means the hardware's cycles.",
            ),
        ),
    )


def _found(findings: Findings, tiling: tuple[int, int], pieces: int) -> float:
    rows, columns = tiling
    return found(findings, "cycles", tile_batch=rows, tile_inter=columns, pieces=pieces)


def _off(cycles: float, tiling: tuple[int, int]) -> float:
    """Return the error of cycles, in percent."""
    return 100 * (cycles / PRINTED[tiling] - 1)


def beside(findings: Findings) -> list[tuple[str, ...]]:
    table = []
    errors: dict[str, list[float]] = {"simulator": [], **{way: [] for way in WAYS}}
    for tiling, printed in PRINTED.items():
        cycles = [SIMULATED[tiling], *(_found(findings, tiling, each) for each in WAYS.values())]
        for each, of_source in zip(cycles, errors.values(), strict=True):
            of_source.append(_off(each, tiling))
        cells = [f"{each:,.0f} ({_off(each, tiling):.1f} %)" for each in cycles]
        table.append((f"{tiling[0]} x {tiling[1]}", f"{printed:,}", *cells))
    means = [
        f"{statistics.mean(map(abs, each)):.2f} %, at worst {max(map(abs, each)):.1f} %"
        for each in errors.values()
    ]
    return [*table, ("mean error", "", *means)]


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(8, 3.6)
    axes = figure.subplots()
    lines = {"the authors' simulator": [_off(SIMULATED[each], each) for each in PRINTED]}
    for way, pieces in WAYS.items():
        lines[way] = [_off(_found(findings, each, pieces), each) for each in PRINTED]
    colours = ("black", COLOURS["static"], COLOURS["dynamic"])
    for (label, values), colour in zip(lines.items(), colours, strict=True):
        axes.plot(values, "o", color=colour, label=label)
    named(axes, "", "tiling", "off by (%)")
    axes.set_xticks(range(len(PRINTED)), [f"({a}, {b})" for a, b in PRINTED])
    axes.legend()

"""Are static or dynamic tiles better if few vectors are multiplied by each of many matrices?

Run: python -m fabric study programs/questions/matrix_vector_tiles.py -o matrix_vector_tiles
"""

from __future__ import annotations

from beyond.savings import PROGRAMS, lines, ratio, times
from matplotlib.figure import Figure

from fabric import Findings, Picture, Study, geometric, grid

BATCHES = geometric(1, 256, 4)
SKEWS = (0.0, 1.0, 2.0)
TILES = (1, 4, 16, 64)
COUNTED = {"cycles": "cycles", "flops": "FLOPs", "on_chip_requirement_bytes": "on-chip bytes"}
DYNAMIC = {"tiling": "dynamic"}


def draw(findings: Findings, figure: Figure) -> None:
    panels = figure.subplots(len(SKEWS), len(COUNTED), squeeze=False)
    figure.set_size_inches(10, 9)
    for row, skew in zip(panels, SKEWS, strict=True):
        for axes, (metric, label) in zip(row, COUNTED.items(), strict=True):
            points: list[dict[str, object]] = [{"batch": batch, "skew": skew} for batch in BATCHES]
            series = {
                f"tiles of {rows}": [
                    ratio(
                        findings,
                        metric,
                        {**each, "tiling": "static", "tile_n": rows},
                        each | DYNAMIC,
                    )
                    for each in points
                ]
                for rows in TILES
            }
            lines(axes, BATCHES, series, "vectors", f"{label}, static over dynamic")
            times(axes)
            axes.set_title(f"skew {skew:g}")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def study() -> Study:
    tiles = grid(tiling=["static"], tile_n=TILES) + grid(tiling=["dynamic"])
    return Study(
        program=PROGRAMS / "matrix_vector.py",
        question="From which batch and skew on do dynamic tiles take less than every static one?",
        mode="timing",
        fixed={"matrices": 32, "inner": 1024, "outer": 1024},
        space=grid(batch=BATCHES, skew=SKEWS) * tiles,
        pictures=(
            Picture(
                "tiles",
                "Static over dynamic tiles of vectors, 32 matrices of 1,024 x 1,024",
                draw,
                "Large static tiles read a matrix as rarely as dynamic tiles, but multiply and "
                "store padding. Small static tiles read a matrix again for each tile.",
            ),
        ),
    )

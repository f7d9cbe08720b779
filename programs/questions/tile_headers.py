"""The cost of dynamic tiles if hardware sends the size of each tile along with it.

``programs/matrix_vector.py`` describes the headers and the limits of this model.

Run: python -m fabric study programs/questions/tile_headers.py -o tile_headers
"""

from __future__ import annotations

from beyond.savings import COLOURS, PROGRAMS, Values, lines, ratio
from matplotlib.figure import Figure

from fabric import Findings, Picture, Study, geometric, grid, zipped

HEADERS = geometric(4, 1024, 4)
BATCHES = (4, 64)
TILES = (1, 4, 16, 64)
SIZES = (64, 256, 1024)
COUNTED = {"cycles": "cycles", "off_chip_traffic_bytes": "off-chip traffic"}


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the cost of headers by their size, with a dashed line for the best static tile."""
    panels = figure.subplots(len(BATCHES), len(COUNTED), squeeze=False)
    figure.set_size_inches(10, 7)
    for row, batch in zip(panels, BATCHES, strict=True):
        for axes, (metric, label) in zip(row, COUNTED.items(), strict=True):
            series = {}
            for at, size in enumerate(SIZES):
                named: dict[str, object] = {"batch": batch, "inner": size}
                free = {**named, "tiling": "dynamic", "header_bytes": None}
                series[f"{size} x {size}"] = [
                    _percent_more(findings, metric, {**free, "header_bytes": header}, free)
                    for header in HEADERS
                ]
                static = [{**named, "tiling": "static", "tile_n": rows} for rows in TILES]
                best = min(_percent_more(findings, metric, each, free) for each in static)
                axes.axhline(best, color=COLOURS[at], linestyle="--")
            lines(axes, HEADERS, series, "bytes of a header", f"{label}, % more")
            axes.set_title(f"{batch} vectors")
    panels[0][0].legend(title="matrices of", fontsize="small")


def _percent_more(findings: Findings, metric: str, more: Values, less: Values) -> float:
    return 100 * ratio(findings, metric, more, less) - 100


def study() -> Study:
    return Study(
        program=PROGRAMS / "matrix_vector.py",
        question="What do headers add to dynamic tiles, beside the best static tile without one?",
        mode="timing",
        fixed={"matrices": 8, "tile_f": 64},
        space=zipped(inner=SIZES, outer=SIZES)
        * grid(batch=BATCHES)
        * (
            grid(tiling=["dynamic"], header_bytes=[None, 0, *HEADERS])
            + grid(tiling=["static"], tile_n=TILES)
        ),
        pictures=(
            Picture(
                "headers",
                "Dynamic tiles with headers, over dynamic tiles without",
                draw,
                "A header of h bytes takes h / 64 cycles behind every operator that sends dynamic "
                "tiles, and adds h bytes to every row off chip. Dashed: the best static tile for "
                "this metric alone. Static tiles need no header.",
            ),
        ),
    )

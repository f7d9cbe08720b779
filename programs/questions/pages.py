"""Which page size of a memory unit is best for tiles of any size?

In section 6 of the paper, dynamic tiles take whole pages of a fixed size, with a map from a tile to
its pages. According to the paper, the map of a unit of 512 KB takes less than 30 KB, about 6 %. The
paper does not give the size of a page. Here the map has only the number of each page in its unit.
The index of a tile's entry and the time of a look-up are left out. Static tiles take pages, too.
Each page size runs twice: with unlimited memory, in which no allocation waits for a page, and with
memory units of 8 MiB in all.

Run: python -m fabric study programs/questions/pages.py -o pages
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from beyond.savings import PROGRAMS, lines, ratio
from matplotlib.figure import Figure

from fabric import Findings, Picture, Study, StudyTable, grid

PAGES = (16, 32, 64, 256, 1024, 4096, 16384, 65536)
MODELS = ("qwen3-30b-a3b", "mixtral-8x7b")
TILINGS = ("static", "dynamic")
PAGE = "hardware.on_chip.page_bytes"
CAPACITY = "hardware.on_chip.capacity_bytes"
UNIT_BYTES = 524_288
SMALL_BYTES = 16 * UNIT_BYTES
CLAIMED_BYTES = 30_000


def map_bytes(page_bytes: int) -> int:
    """Return the bytes of the map of a whole unit, with log2(n) bits for each of n pages."""
    pages = UNIT_BYTES // page_bytes
    return math.ceil(pages * math.log2(pages) / 8)


def fragmentation(findings: Findings, model: str, tiling: str, page_bytes: int) -> float:
    """Return a lower bound of the empty part of pages at their peak, in percent."""
    at = {"model": model, "tiling": tiling, PAGE: page_bytes, CAPACITY: None}
    held = findings.value("on_chip_peak_bytes", **at)
    pages = findings.value("on_chip_peak_pages", **at)
    return math.nan if held is None or not pages else 100 - 100 * held / (pages * page_bytes)


def mapped(findings: Findings, model: str, tiling: str, page_bytes: int) -> float:
    """Return the bytes of the map over the bytes of the data, both at their peak, in percent."""
    at = {"model": model, "tiling": tiling, PAGE: page_bytes, CAPACITY: None}
    held = findings.value("on_chip_peak_bytes", **at)
    taken = findings.value("on_chip_map_bytes", **at)
    return math.nan if taken is None or not held else 100 * taken / held


def slowdown(findings: Findings, model: str, tiling: str, page_bytes: int) -> float:
    """Return the cycles with 8 MiB of memory over the cycles with unlimited memory."""
    at = {"model": model, "tiling": tiling, PAGE: page_bytes}
    return ratio(findings, "cycles", {**at, CAPACITY: SMALL_BYTES}, {**at, CAPACITY: None})


def waiting(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield the cycles of each layer with 8 MiB, by the size of a page."""
    for page_bytes in PAGES:
        yield (
            page_bytes,
            *(
                round(slowdown(findings, model, tiling, page_bytes), 3)
                for model in MODELS
                for tiling in TILINGS
            ),
        )


def rows(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield the cost of a page size for a whole unit, and for the layers with dynamic tiles."""
    for page_bytes in PAGES:
        whole = map_bytes(page_bytes)
        yield (
            page_bytes,
            whole,
            "yes" if whole < CLAIMED_BYTES else "no",
            *(
                round(measure(findings, model, "dynamic", page_bytes), 2)
                for model in MODELS
                for measure in (mapped, fragmentation)
            ),
        )


def draw(findings: Findings, figure: Figure) -> None:
    panels = figure.subplots(1, len(MODELS), sharey=True, squeeze=False)[0]
    figure.set_size_inches(10, 4)
    for axes, model in zip(panels, MODELS, strict=True):
        series = {
            f"{what}, {tiling}": [measure(findings, model, tiling, page) for page in PAGES]
            for what, measure in (("empty", fragmentation), ("map", mapped))
            for tiling in TILINGS
        }
        lines(axes, PAGES, series, "bytes of a page", "% of the pages' bytes")
        axes.set_title(model)
    panels[0].legend(fontsize="small")


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question="How large are pages best, and does their map take less than 6 %?",
        mode="timing",
        fixed={"batch": 64, "tile_n": 16, "hardware.on_chip.unit_bytes": UNIT_BYTES},
        space=grid(
            {"model": MODELS, "tiling": TILINGS, PAGE: PAGES, CAPACITY: (None, SMALL_BYTES)}
        ),
        pictures=(
            Picture(
                "pages",
                "What pages leave empty, and what their map takes",
                draw,
                "Empty: the peak of pages less the peak of bytes, a lower bound. The map has a "
                "number for each page.",
            ),
        ),
        tables=(
            StudyTable(
                title="Page sizes",
                columns=(
                    "bytes of a page",
                    "map of 512 KB",
                    "below 30 KB",
                    *(f"{model}: {what}, %" for model in MODELS for what in ("map", "empty")),
                ),
                rows=rows,
                caption="Dynamic tiles. The map in % of the data, the empty part in % of pages.",
            ),
            StudyTable(
                title="Cycles with 8 MiB, over those without a limit",
                columns=(
                    "bytes of a page",
                    *(f"{model}: {tiling}" for model in MODELS for tiling in TILINGS),
                ),
                rows=waiting,
                caption="An allocation waits until enough pages are free.",
            ),
        ),
    )

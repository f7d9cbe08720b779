"""Figures 9 and 10 with equal compute units and equally counted memory on both sides.

Run: python -m fabric study programs/studies/equal_resources.py -o equal_resources
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from paper.claims import Found, claim, mean, published_claim
from paper.printed import Printed
from paper.tables import PROGRAMS
from paper.tiling import (
    BATCH_64,
    BATCH_1024,
    EQUAL_FLOPS,
    MEMORY,
    PUBLISHED_FLOPS,
    designs,
    improvement,
)
from paper.tradeoff import Dynamic, draw_layer
from paper.workloads import MIXTRAL_64, MIXTRAL_1024, QWEN_64, QWEN_1024

from fabric import Findings, Picture, Study, StudyTable

LAYERS = (MIXTRAL_64, QWEN_64, MIXTRAL_1024, QWEN_1024)
FIRST_VERSION_TILES = {64: (16, 64), 1024: (256, 1024)}
STARS = [
    Dynamic("dynamic, 4096 FLOPs/cycle, active experts", "active experts", EQUAL_FLOPS),
    Dynamic("dynamic, 4096 FLOPs/cycle, all experts", "all experts", EQUAL_FLOPS, colour="static"),
    Dynamic("dynamic as published", "active experts", PUBLISHED_FLOPS, filled=False),
]


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question="What remains of figures 9 and 10 when both sides have the same resources?",
        fixed={"tile_f": 64},
        space=LAYERS[0].space + LAYERS[1].space + LAYERS[2].space + LAYERS[3].space,
        claims=(
            claim("dynamic tiling speedup geomean", first_speedup),
            claim("memory saving", first_saving),
        ),
        tables=(
            StudyTable(
                "What the paper compares, with equal resources",
                ("what", "published", "as the paper compares", "with", "then"),
                equally,
                "Comparisons that the paper makes with equal resources are left out. Dynamic tiles "
                "are beyond the front of all static ones if the Pareto improvement distance (PID) "
                "is above 1.",
            ),
        ),
        pictures=(
            Picture(
                "equal_resources",
                "Figures 9 and 10 with equal resources",
                draw,
                "All compute units have 4096 FLOPs per cycle. For Qwen, the memory of all experts "
                "or of experts with tokens is counted, for both kinds of tiles. The hollow star is "
                "the dynamic tile as in the paper, which counts all experts of static tiles.",
            ),
        ),
    )


def first_speedup(findings: Findings) -> Found:
    """Return the geometric mean of speed-ups over the smaller static tile of the first version."""

    def ratios(flops_per_cycle: int) -> list[float]:
        speedups = []
        for layer in LAYERS:
            counted = "active experts"
            fixed, ours = designs(findings, layer, counted, counted, flops_per_cycle)
            speedups.append(fixed[FIRST_VERSION_TILES[layer.batch][0]].cycles / ours.cycles)
        return speedups

    return Found(
        (mean(ratios(PUBLISHED_FLOPS)),),
        {"4096 FLOPs per cycle on both sides": mean(ratios(EQUAL_FLOPS))},
        "Computed for tile=16 at batch 64 and tile=256 at batch 1024, both models.",
        "The text does not name the designs of the mean.",
    )


def first_saving(findings: Findings) -> Found:
    """Return a geometric mean of savings. The text may mean another one."""
    savings = []
    for layer in LAYERS:
        counted = "active experts"
        fixed, ours = designs(findings, layer, counted, counted, PUBLISHED_FLOPS)
        savings += [
            fixed[tile_n].on_chip_bytes / ours.on_chip_bytes
            for tile_n in FIRST_VERSION_TILES[layer.batch]
        ]
    return Found(
        (mean(savings),),
        note="Computed for all static tiles of the first version and both models. For all tiles, "
        "the memory of experts with tokens is counted.",
        unpublished="The text does not name the designs of the mean.",
    )


def equally(findings: Findings) -> Iterator[tuple[str, ...]]:
    """Yield a row for each comparison and each way of making its resources equal."""
    for text, compare in {**BATCH_64, **BATCH_1024}.items():
        claimed = published_claim(text)
        yield from _ways(text, claimed.value, claimed.value, compare(findings))
    distance = improvement(QWEN_1024)(findings)
    yield from _ways("PID Qwen b1024", "", "1.00", distance)


def _ways(what: str, published: str, form: str, found: Found) -> Iterator[tuple[str, ...]]:
    text = Printed.parse(form).told
    for how, value in found.equal.items():
        yield what, published, text(found.values), how, text([value])


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(9.5, 8.5)
    panels = figure.subplots(2, 2).flat
    for axes, layer in zip(panels, LAYERS, strict=True):
        # All experts of Mixtral get tokens, so counting active experts only is the same.
        shown = slice(None) if layer.idle_experts else slice(None, None, 2)
        statics = {f"static tiles, {counted}": counted for counted in list(MEMORY)[shown]}
        draw_layer(axes, findings, layer, statics, STARS[shown])
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)

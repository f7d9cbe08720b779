"""Figure 15: attention, requests handed out dynamically or in blocks, by the size of the batch.

Run: python -m fabric study programs/studies/figure_15.py -o figure_15
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paper.attention import published_attention
from paper.claims import Found, claim, number
from paper.drawing import COLOURS, bars, found, named, published
from paper.published import known
from paper.tables import PROGRAMS
from paper.workloads import cache_traces

from fabric import Findings, Picture, Study, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCHES = (16, 32, 48, 64)
STRATEGIES = ("coarse", "dynamic")
TRACE = next(each for each in cache_traces(64, "med") if each.deviation == 996)
PUBLISHED_POINTS = [
    replace(each, setting={**each.setting, "requests": 64})
    for each in published_attention([TRACE], STRATEGIES)
]


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "attention.py",
        question="How much does dynamic parallelisation gain over blocks, by the batch?",
        fixed={"kv": TRACE.path},
        space=grid(requests=BATCHES, strategy=STRATEGIES),
        known=known(PUBLISHED_POINTS),
        claims=(
            claim("Dynamic over coarse, batch 16", batch_16),
            claim("Dynamic over coarse, batch 64", batch_64),
            claim("dynamic parallelization latency gain", batch_16),
        ),
        pictures=(
            Picture(
                "figure_15",
                "Figure 15: coarse and dynamic parallelisation by the size of the batch",
                draw,
                "Regions own blocks of 16 requests when the parallelisation is coarse: fewer "
                "requests leave regions idle. Circles: published.",
            ),
        ),
    )


def batch_16(findings: Findings) -> Found:
    """Return how many times faster dynamic parallelisation is with 16 requests."""
    return Found((_speedup(findings, 16),), note="The first 16 requests: one region of four works.")


def batch_64(findings: Findings) -> Found:
    """Return the same with 64."""
    return Found((_speedup(findings, 64),))


def _speedup(findings: Findings, requests: int) -> float:
    coarse, dynamic = (
        number(findings, "cycles", requests=requests, strategy=each) for each in STRATEGIES
    )
    return coarse / dynamic


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the cycles of each batch."""
    axes = figure.subplots()
    cycles = {
        strategy: [
            found(findings, "cycles", requests=each, strategy=strategy) / 1e3 for each in BATCHES
        ]
        for strategy in STRATEGIES
    }
    series = {each: (COLOURS[each], heights) for each, heights in cycles.items()}
    bars(axes, list(map(str, BATCHES)), series)
    for at, (coarse, dynamic) in enumerate(zip(*cycles.values(), strict=True)):
        axes.annotate(
            f"{coarse / dynamic:.2f}x", (at, max(coarse, dynamic)), ha="center", va="bottom"
        )
    theirs = []
    for each in PUBLISHED_POINTS:
        at = BATCHES.index(int(each.setting["requests"]))
        side = -0.2 if each.setting["strategy"] == "coarse" else 0.2
        theirs.append((at + side, each.value / 1e3))
    published(axes, theirs)
    named(axes, "", "requests", "thousand cycles")
    axes.margins(y=0.12)
    axes.legend()

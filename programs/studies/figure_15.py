"""Figure 15: attention, requests assigned dynamically or in blocks, by the size of the batch.

Run: python -m fabric study programs/studies/figure_15.py -o figure_15
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from matplotlib.figure import Figure
from paper import camera_ready
from paper.attention import published_attention
from paper.claims import Found, claim, number
from paper.drawing import COLOURS, bars, found, named, published
from paper.published import Published, known
from paper.tables import PROGRAMS
from paper.workloads import BLOCK, TRACE_15

from fabric import Findings, Picture, Study, grid

BATCHES = (16, 32, 48, 64)
STRATEGIES = ("coarse", "dynamic")


def study() -> Study:
    return Study(
        program=PROGRAMS / "attention.py",
        question="How does the gain of dynamic parallelisation over blocks depend on the batch?",
        fixed={"kv": TRACE_15.path},
        space=grid(requests=BATCHES, strategy=STRATEGIES)
        + grid(requests=(BLOCK,), strategy=("interleaved",)),
        known=known(camera_ready.blocks(), _earlier()),
        claims=(
            claim("Dynamic over coarse, batch 16", batch_16),
            claim("Dynamic over coarse, batch 64", lambda findings: _speedup(findings, 64)),
        ),
        pictures=(
            Picture(
                "figure_15",
                "Figure 15: coarse and dynamic parallelisation by the size of the batch",
                draw,
                "Coarse parallelisation gives each region a block of 16 requests, so small batches "
                "leave regions idle. Circles: printed.",
            ),
        ),
    )


def batch_16(findings: Findings) -> Found:
    """Return the speed-up of dynamic parallelisation with 16 requests.

    Coarse parallelisation makes one block of them, so one region works. Dynamically, four regions
    share them.
    """
    in_turn = _speedup(findings, BLOCK, "interleaved")
    return Found(
        (_speedup(findings, BLOCK),),
        {"four regions on both sides, requests dealt out in turn": in_turn},
        "The first 16 requests are one block: one region of four works.",
    )


def _speedup(findings: Findings, requests: int, static: str = "coarse") -> float:
    other, dynamic = (
        number(findings, "cycles", requests=requests, strategy=each) for each in (static, "dynamic")
    )
    return other / dynamic


def _earlier() -> Iterator[Published]:
    """Yield the values of earlier runs, which have the whole batch."""
    for each in published_attention([TRACE_15], STRATEGIES):
        yield replace(each, setting={**each.setting, "requests": 64})


def draw(findings: Findings, figure: Figure) -> None:
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
    for each in camera_ready.blocks():
        at = BATCHES.index(int(each.setting["requests"]))
        side = -0.2 if each.setting["strategy"] == "coarse" else 0.2
        theirs.append((at + side, each.value / 1e3))
    published(axes, theirs, "printed")
    named(axes, "", "requests", "thousand cycles")
    axes.margins(y=0.12)
    axes.legend()

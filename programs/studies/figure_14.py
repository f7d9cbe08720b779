"""Figure 14: attention, requests assigned dynamically or in turn, by the variation of lengths.

Run: python -m fabric study programs/studies/figure_14.py -o figure_14
"""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure
from paper.attention import published_attention, speedups
from paper.claims import Found, claim
from paper.drawing import COLOURS, bars, found, named, published
from paper.published import known
from paper.tables import PROGRAMS
from paper.workloads import cache_traces

from fabric import Findings, Picture, Study, grid

STRATEGIES = ("interleaved", "dynamic")
TRACES = cache_traces(64)


def study() -> Study:
    return Study(
        program=PROGRAMS / "attention.py",
        question="How does the gain of dynamic parallelisation depend on the variation of lengths?",
        space=grid(kv=[each.path for each in TRACES], strategy=STRATEGIES),
        known=known(published_attention(TRACES, STRATEGIES)),
        claims=tuple(
            claim(f"Dynamic over interleave, {each} variation (range)", partial(of_class, each))
            for each in ("low", "high")
        ),
        pictures=(
            Picture(
                "figure_14",
                "Figure 14: speed-up of dynamic over interleaved parallelisation, batch 64",
                draw,
                "Nine batches of requests, three of each class of variation; circles: published.",
            ),
        ),
    )


def of_class(kv_class: str, findings: Findings) -> Found:
    return Found(tuple(speedups(findings, "interleaved", cache_traces(64, kv_class))))


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(8, 4)
    axes = figure.subplots()
    ours = speedups(findings, "interleaved", TRACES, found)
    groups = [f"{each.kv_class}\n{each.deviation}" for each in TRACES]
    bars(axes, groups, {"this fabric": (COLOURS["dynamic"], ours)}, ".2f")
    cycles = {
        (each.setting["kv"], each.setting["strategy"]): each.value
        for each in published_attention(TRACES, STRATEGIES)
    }
    theirs = [cycles[each.path, "interleaved"] / cycles[each.path, "dynamic"] for each in TRACES]
    published(axes, enumerate(theirs))
    axes.axhline(1, color="black", linewidth=0.8)
    named(axes, "", "standard deviation of the cache lengths (tokens)", "speed-up over interleaved")
    axes.legend(loc="upper left")

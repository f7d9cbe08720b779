"""Figure 21: three ways to assign requests to regions, by the batch and the variation of lengths.

Run: python -m fabric study programs/studies/figure_21.py -o figure_21
"""

from __future__ import annotations

from matplotlib.figure import Figure
from paper import camera_ready
from paper.attention import published_attention, speedups
from paper.claims import Found, claim, mean
from paper.drawing import COLOURS, bars, found, named, published
from paper.published import known
from paper.tables import PROGRAMS
from paper.workloads import BLOCK, KV_CLASSES, cache_traces

from fabric import Findings, Picture, Study, grid

BATCHES = (16, 64, 80)
STRATEGIES = ("coarse", "interleaved", "dynamic")
TRACES = tuple(each for batch in BATCHES for each in cache_traces(batch))


def study() -> Study:
    return Study(
        program=PROGRAMS / "attention.py",
        question="Which assignment of requests to regions is fastest for which batches?",
        space=grid(kv=[each.path for each in TRACES], strategy=STRATEGIES),
        known=known(published_attention(TRACES, STRATEGIES)),
        claims=(
            claim(
                "Overall geomean, dynamic over interleave",
                lambda findings: mean(speedups(findings, "interleaved", TRACES)),
            ),
            claim("Overall geomean, dynamic over coarse", over_coarse),
            claim("dynamic parallelization", over_both),
        ),
        pictures=(
            Picture(
                "figure_21",
                "Figure 21: cycles of three parallelisations, over the dynamic one",
                draw,
                "Geometric means of three batches of requests each, and of all nine. Circles: "
                "printed.",
            ),
        ),
    )


def over_coarse(findings: Findings) -> Found:
    """Return the mean speed-up of dynamic over coarse parallelisation.

    Coarse parallelisation makes one block of a batch of 16 requests, so one region works.
    """
    shared = [each for each in TRACES if each.batch > BLOCK]
    return Found(
        (mean(speedups(findings, "coarse", TRACES)),),
        {
            "four regions on both sides, that is without the batches of 16": mean(
                speedups(findings, "coarse", shared)
            )
        },
    )


def over_both(findings: Findings) -> Found:
    ratios = [
        each
        for strategy in ("coarse", "interleaved")
        for each in speedups(findings, strategy, TRACES)
    ]
    return Found(
        (mean(ratios),),
        note="The geometric mean over both static parallelisations and all batches.",
        unpublished="The first version does not name the runs of its mean.",
    )


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(9.5, 4)
    panels = figure.subplots(1, len(BATCHES), sharey=True)
    printed = camera_ready.bars(21)
    for axes, batch in zip(panels, BATCHES, strict=True):
        groups = [*(cache_traces(batch, each) for each in KV_CLASSES), cache_traces(batch)]
        series = {
            strategy: (
                COLOURS[strategy],
                [mean(speedups(findings, strategy, each, found)) for each in groups],
            )
            for strategy in STRATEGIES
        }
        bars(axes, [*KV_CLASSES, "all"], series, ".2f", turn_degrees=90)
        theirs = []
        for side, strategy in ((-0.8 / 3, "coarse"), (0, "interleaved")):
            name = "64+16" if batch == 80 else str(batch)
            heights = [printed[f"static {strategy}, batch {name}", each][0] for each in KV_CLASSES]
            theirs += [(at + side, each) for at, each in enumerate([*heights, mean(heights)])]
        published(axes, theirs, "printed")
        named(axes, f"{batch} requests", "variation of the cache lengths", "")
    panels[0].set_ylabel("cycles, dynamic = 1")
    panels[0].set_ylim(top=3.9)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(handles[0]))

"""Figure 10: static tiles against the dynamic one, mixture-of-experts layers of batch 1024.

Run: python -m fabric study programs/studies/figure_10.py -o figure_10
"""

from __future__ import annotations

from paper import camera_ready
from paper.claims import claim
from paper.published import known, multiplexing, tiling
from paper.tables import PROGRAMS
from paper.tiling import BATCH_1024, FIRST_VERSION
from paper.tradeoff import CAPTION, tradeoff
from paper.workloads import MIXTRAL_1024, QWEN_1024

from fabric import Findings, Judgement, Picture, Study, Verdict

LAYERS = (MIXTRAL_1024, QWEN_1024)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "moe.py",
        question="Does a dynamic tile take fewer cycles or less memory than every static one?",
        fixed={"tile_f": 64},
        space=LAYERS[0].space + LAYERS[1].space,
        known=known(camera_ready.tiling(1024), tiling(1024)),
        claims=(
            *(claim(text, compute) for text, compute in BATCH_1024.items()),
            *(claim(text, compute, value) for (text, value), compute in FIRST_VERSION.items()),
            claim("artifact run time", run_time),
        ),
        pictures=(
            Picture(
                "figure_10",
                "Figure 10: cycles and on-chip memory, batch 1024",
                tradeoff(LAYERS, camera_ready.tiling(1024)),
                CAPTION,
            ),
        ),
    )


def run_time(_: Findings) -> Judgement:
    """Add up what the authors' runs took, where that is published."""
    values = (*tiling(64), *tiling(1024), *multiplexing())
    seconds = [each.seconds for each in values if each.seconds is not None]
    return Judgement(
        f"{sum(seconds) / 3600:.1f} h for {len(seconds)} runs",
        Verdict.INCONSISTENT,
        "Two places of the text differ; it is about the artifact, not about STeP. The seconds are "
        "the authors' own, of those earlier runs whose cycles are published: one after the other "
        "they alone take longer than 7 h.",
    )

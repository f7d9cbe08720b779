"""Figure 10: static tiles and the dynamic tile, mixture-of-experts layers of batch 1024.

Run: python -m fabric study programs/studies/figure_10.py -o figure_10
"""

from __future__ import annotations

from paper.claims import claim
from paper.published import multiplexing, tiling
from paper.tile_sizes import cycles_study
from paper.tiling import BATCH_1024, FIRST_VERSION

from fabric import Findings, Judgement, Study, Verdict


def study() -> Study:
    claims = (
        *(claim(text, compute) for text, compute in BATCH_1024.items()),
        *(claim(text, compute, value) for (text, value), compute in FIRST_VERSION.items()),
        claim("artifact run time", run_time),
    )
    return cycles_study(10, 1024, claims)


def run_time(_: Findings) -> Judgement:
    """Add up the published seconds of the authors' runs."""
    values = (*tiling(64), *tiling(1024), *multiplexing())
    seconds = [each.seconds for each in values if each.seconds is not None]
    return Judgement(
        f"{sum(seconds) / 3600:.1f} h for {len(seconds)} runs",
        Verdict.INCONSISTENT,
        "Two places of the text differ. The claim is about the artifact, not about STeP. The "
        "seconds are of the authors' earlier runs with published cycles. These runs alone, one "
        "after the other, take longer than 7 h.",
    )

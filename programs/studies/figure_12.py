"""Figure 12: fewer regions for Qwen's 128 experts: cycles and compute utilisation.

Run: python -m fabric study programs/studies/figure_12.py -o figure_12
"""

from __future__ import annotations

from matplotlib.figure import Figure
from paper import camera_ready
from paper.claims import Found, claim, mean, number
from paper.drawing import COLOURS, found, named, published
from paper.multiplexing import CLAIMS, ratio
from paper.published import known, multiplexing, newest
from paper.tables import PROGRAMS
from paper.workloads import REGIONS, multiplexed

from fabric import Findings, Picture, Study


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question="How few regions can share the experts before the layer takes longer?",
        fixed={"tile_f": 48, "flops_per_cycle": 1024},
        space=multiplexed("static") + multiplexed("dynamic"),
        known=known(camera_ready.multiplexing(), multiplexing()),
        claims=(
            *(claim(text, compute) for text, compute in CLAIMS.items()),
            claim("Static has x more total FLOPs than dynamic", more_flops),
            claim("utilisation", both_gains),
        ),
        pictures=(
            Picture(
                "figure_12",
                "Figure 12: time-multiplexed regions, Qwen3-30B-A3B, batch 64",
                draw,
                "Bars: utilisation of the compute units, as the authors count operations; line: "
                "cycles; circles: published cycles.",
            ),
        ),
    )


def both_gains(findings: Findings) -> Found:
    gains = [ratio(findings, "compute_utilization", each) for each in ("static", "dynamic")]
    return Found(
        (mean(gains),),
        note="Computed as the geometric mean of static and dynamic tiles.",
        unpublished="The text does not name the gains of the mean.",
    )


def more_flops(findings: Findings) -> Found:
    """Return the operations of padded tiles over those without padding."""
    counts = [
        number(findings, "extra.flops_artifact", tiling=each, regions=128)
        for each in ("static", "dynamic")
    ]
    return Found((counts[0] / counts[1],))


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(9, 4.2)
    panels = figure.subplots(1, 2)
    for axes, tiling in zip(panels, ("static", "dynamic"), strict=True):
        regions = REGIONS[tiling]
        at = range(len(regions))
        cycles, percent = [], []
        for each in regions:
            point = {"tiling": tiling, "regions": each}
            cycles.append(found(findings, "cycles", **point))
            allocated = found(findings, "allocated_flops_per_cycle", **point)
            flops = found(findings, "extra.flops_artifact", **point)
            percent.append(100 * flops / cycles[-1] / allocated)
        bars = axes.bar(at, percent, color=COLOURS[tiling], alpha=0.45, label="utilisation")
        axes.bar_label(bars, [f"{each:.1f}" for each in percent], fontsize=8)
        named(axes, f"{tiling} tiles", "regions", "compute utilisation (%)")
        axes.set_xticks(at, map(str, regions))
        axes.grid(visible=False)
        line = axes.twinx()
        line.plot(at, [each / 1e6 for each in cycles], "o-", color=COLOURS[tiling], label="cycles")
        theirs = [
            (regions.index(int(each.setting["regions"])), each.value / 1e6)
            for each in newest(multiplexing(), camera_ready.multiplexing())
            if each.metric == "cycles" and each.setting["tiling"] == tiling
        ]
        published(line, theirs)
        line.set_ylabel("million cycles")
        line.set_ylim(bottom=0)
        line.spines["right"].set_visible(True)
        line.grid(visible=False)
        handles = [*axes.get_legend_handles_labels()[0], *line.get_legend_handles_labels()[0]]
        axes.legend(handles=handles, loc="upper left")

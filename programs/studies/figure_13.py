"""Figure 13: how many resources shared regions free, and what they cost, with static tiles.

Run: python -m fabric study programs/studies/figure_13.py -o figure_13
"""

from __future__ import annotations

from matplotlib.figure import Figure
from paper import camera_ready
from paper.claims import Found, claim
from paper.drawing import COLOURS, bars, found, named
from paper.multiplexing import ratio
from paper.published import known, multiplexing
from paper.tables import PROGRAMS
from paper.tiling import MEMORY
from paper.workloads import REGIONS, multiplexed

from fabric import Findings, Picture, Study


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question="How much compute and memory do shared regions free, and what do they cost?",
        fixed={"tile_f": 48, "flops_per_cycle": 1024},
        space=multiplexed("static"),
        known=known(
            each
            for table in (camera_ready.multiplexing(), multiplexing())
            for each in table
            if each.setting["tiling"] == "static"
        ),
        claims=(
            claim(
                "Allocated compute freed",
                lambda findings: 100 * (1 - ratio(findings, "allocated_flops_per_cycle", "static")),
            ),
            claim("On-chip memory freed", memory_freed),
        ),
        pictures=(
            Picture(
                "figure_13",
                "Figure 13: resources and performance with shared regions, static tiles",
                draw,
                "Left: the layer's resources, in percent of those with a region for each expert. "
                "Right: how well it uses the off-chip memory, and how much longer it takes.",
            ),
        ),
    )


def memory_freed(findings: Findings) -> Found:
    freed = {
        counted: 100 * (1 - ratio(findings, metric, "static")) for counted, metric in MEMORY.items()
    }
    return Found(
        (freed["active experts"],),
        note="Only experts and regions that get tokens are counted, with and without sharing. If "
        f"all are counted, {freed['all experts']:.2f} %.",
    )


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(9, 4.2)
    resources, performance = figure.subplots(1, 2)
    regions = REGIONS["static"]

    def percent_of_all(metric: str) -> list[float]:
        values = [found(findings, metric, regions=each) for each in regions]
        return [100 * each / values[0] for each in values]

    bars(
        resources,
        list(map(str, regions)),
        {
            "allocated compute": (COLOURS["static"], percent_of_all("allocated_flops_per_cycle")),
            "on-chip memory": (COLOURS["other"], percent_of_all(MEMORY["active experts"])),
        },
        ".0f",
    )
    named(resources, "", "regions", "of that with 128 regions (%)")
    resources.set_ylim(top=115)
    resources.legend()
    overhead = [each - 100 for each in percent_of_all("cycles")]
    bandwidth = [
        100 * found(findings, "off_chip_bandwidth_utilization", regions=each) for each in regions
    ]
    series = {
        "off-chip bandwidth used": (COLOURS["coarse"], bandwidth),
        "overhead": (COLOURS["dynamic"], overhead),
    }
    bars(performance, list(map(str, regions)), series, ".0f")
    named(performance, "", "regions", "%")
    performance.legend(loc="upper left")

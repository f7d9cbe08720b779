"""The savings of ragged pairs in a dynamic program, and the number of pairs in its loop.

Units with 16 operations per cycle show the effect of a wavefront's width. The paper's units compute
every wavefront of these pairs in one cycle. Every point is verified.

Run: python -m fabric study programs/questions/ragged_pairs.py -o ragged_pairs
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, lines, ratio, savings, times
from matplotlib.figure import Figure

from fabric import Findings, Picture, Study, grid

LANES = (1, 2, 4, 8)
LONGEST = (8, 16, 32)
UNIT = "hardware.compute.flops_per_cycle"
UNITS = (16, 4096)


def draw_lanes(findings: Findings, figure: Figure) -> None:
    panels = figure.subplots(1, len(UNITS), sharey=True)
    for axes, unit in zip(panels, UNITS, strict=True):
        series = {}
        for sequences in ("ragged", "padded"):
            named = {"longest": LONGEST[-1], "sequences": sequences, UNIT: unit}
            series[sequences] = [
                ratio(findings, "cycles", {**named, "lanes": 1}, {**named, "lanes": lanes})
                for lanes in LANES
            ]
        lines(axes, LANES, series, "pairs in the loop at a time", "times as fast as one")
        times(axes)
        axes.set_title(f"{unit:,} FLOPs a cycle")
    panels[0].legend()


def study() -> Study:
    groups = {
        f"up to {longest} letters": {"longest": longest, "lanes": 4, UNIT: UNITS[0]}
        for longest in LONGEST
    }
    return Study(
        program=PROGRAMS / "edit_distance.py",
        question="What do pairs of any length save over pairs that are padded to the longest?",
        mode="functional",
        fixed={"pairs": 16},
        space=grid(sequences=["ragged", "padded"])
        * (
            grid({"longest": LONGEST[:-1], "lanes": [4], UNIT: UNITS[:1]})
            + grid({"longest": LONGEST[-1:], "lanes": LANES, UNIT: UNITS})
        ),
        pictures=(
            Picture(
                "sequences",
                "Padded over ragged sequences, four pairs at a time, 16 FLOPs a cycle",
                savings(groups, {"all padded": {"sequences": "padded"}}, {"sequences": "ragged"}),
                CAPTION,
            ),
            Picture(
                "lanes",
                f"Pairs of up to {LONGEST[-1]} letters",
                draw_lanes,
                "A pair waits for its previous lap. Other pairs in the loop use this time.",
            ),
        ),
    )

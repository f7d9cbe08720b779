"""Figure 8: a SwiGLU layer in fifteen tilings, on the simulator and as hardware.

Run: python -m fabric study programs/studies/figure_08.py -o figure_08
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure
from paper import camera_ready
from paper.claims import Found, claim, number
from paper.drawing import COLOURS, found, named, published
from paper.published import Published, hdl, known, newest, swiglu
from paper.tables import PROGRAMS

from fabric import Findings, Picture, Study, geometric, grid

SPACE = grid(tile_batch=(16, 32, 64), tile_inter=geometric(16, 256))
SETTINGS: list[Mapping[str, object]] = list(SPACE)


def study() -> Study:
    return Study(
        program=PROGRAMS / "swiglu.py",
        hardware=PROGRAMS / "hardware/hdl_validation.toml",
        question="Do our cycles follow the authors' simulator and their hardware?",
        space=SPACE,
        known=known(camera_ready.swiglu(), camera_ready.hdl(), swiglu(), hdl()),
        claims=(claim("Pearson correlation STeP vs HDL cycles", correlation),),
        pictures=(
            Picture(
                "figure_08",
                "Figure 8: cycles and off-chip traffic of a SwiGLU layer",
                draw,
                "A tiling is (rows, hidden dimension, columns). The figure has seven of the "
                "hardware's fifteen points and eleven of the simulator's. On these seven, our "
                "cycles are off the hardware's by 4.35 % on average, and the authors' simulator by "
                "4.34 %. On the hardware's banks (hdl_as_run.toml) our cycles are off by 3.24 %, "
                "and in pieces they are equal to the hardware's (hdl.py).",
            ),
        ),
    )


def correlation(findings: Findings) -> Found:
    pairs = [
        (number(findings, "cycles", **each.setting), each.value)
        for each in camera_ready.hdl()
        if each.metric == "cycles"
    ]
    return Found(
        (statistics.correlation(*zip(*pairs, strict=True)),),
        note=f"Over {len(pairs)} points.",
        unpublished="Eight of the hardware's fifteen printed points are left out here.",
    )


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(8, 6.4)
    cycles, traffic = figure.subplots(2, sharex=True)
    for axes, metric, unit in (
        (cycles, "cycles", 1e3),
        (traffic, "off_chip_traffic_artifact_bytes", 1e6),
    ):
        ours = [found(findings, metric, **each) / unit for each in SETTINGS]
        axes.plot(ours, "o", color=COLOURS["dynamic"], label="this fabric")
        theirs = newest(swiglu(), camera_ready.swiglu())
        published(axes, placed(theirs, metric, unit), "the authors' simulator")
        x, y = zip(*placed(camera_ready.hdl(), metric, unit), strict=True)
        axes.plot(x, y, "x", color="black", label="the authors' hardware")
    named(cycles, "", "", "thousand cycles")
    named(traffic, "", "tiling", "off-chip traffic (MB)")
    cycles.legend()
    labels = [f"({each['tile_batch']}, 256, {each['tile_inter']})" for each in SETTINGS]
    traffic.set_xticks(range(len(SETTINGS)), labels, rotation=60, ha="right")


def placed(values: Iterable[Published], metric: str, unit: float) -> list[tuple[float, float]]:
    """Return the place on the axis and the published value of each tiling."""
    return [
        (SETTINGS.index(each.setting), each.value / unit)
        for each in values
        if each.metric == metric
    ]

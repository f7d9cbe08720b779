"""The cost of a floor plan: Qwen's and Mixtral's layers of 64 tokens, and attention of 64 requests.

The paper has no network: each of its channels takes one cycle, wherever its units are. Here units
are on a mesh with at least one site per unit: 48 x 48 for Qwen's layer, 13 x 13 for Mixtral's, and
14 x 14 for attention. A hop takes one cycle. Sites are found by ``place``, random, or assigned row
by row. With unlimited links, only distance costs cycles. With links and injection of 256, 128 and
64 bytes per cycle, congestion costs cycles, too. With all units on one site, the mesh is the
paper's fabric, and costs are relative to this.

Every compute unit of a layer has 4096 FLOPs per cycle, static tiles have 16, 32 or 64 rows, and
routings and cache lengths are from figures 9 and 15. With the narrowest links, ``place`` and random
sites have three seeds, 0 to 2. Otherwise the seed is 0. On other sites, a program sends its memory
requests in another order, which alone may change cycles by a percent.

Run: python -m fabric study programs/studies/floor.py --jobs 1 -o floor
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from matplotlib.figure import Figure
from paper.drawing import COLOURS, found, named
from paper.tables import PROGRAMS, routing
from paper.workloads import MIXTRAL_64, QWEN_64, TRACE_15, Layer, listed

from fabric import Findings, Picture, Space, Study, StudyTable, grid, zipped

LINK: Final = "hardware.network.link_bytes_per_cycle"
INJECTION: Final = "hardware.network.injection_bytes_per_cycle"
COLUMNS: Final = "hardware.network.columns"
ROWS: Final = "hardware.network.rows"
WIDTHS: Final = (None, 256, 128, 64)
"""Bytes per cycle of links; None for unlimited links."""

NARROWEST: Final = 64
SEEDS: Final = (0, 1, 2)
WAYS: Final = {"place": "found", "random": "random", "rows": "row by row"}
"""The names of placements in tables, by parameter."""

FLOPS_PER_CYCLE: Final = 4096
DYNAMIC: Final = "dynamic"


@dataclass(frozen=True)
class Workload:
    """A placed workload.

    Attributes:
        side: columns and rows of its mesh.
        designs: the parameters of each design, by name. The last is the paper's proposal.
    """

    title: str
    side: int
    fixed: Mapping[str, str | int]
    designs: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)

    @property
    def space(self) -> Space:
        alone = {**self.fixed, COLUMNS: self.side, ROWS: self.side}
        designs = listed(self.designs.values())
        return listed([alone]) * designs * (_together() + _apart() + _again())

    def cycles(
        self,
        findings: Findings,
        design: str,
        placement: str,
        width: int | None = None,
        seed: int = 0,
    ) -> float:
        """Return the cycles of a design for a placement and links; NaN if the run is missing."""
        setting = {**self.fixed, **self.designs[design]}
        return found(
            findings, "cycles", **setting, placement=placement, placement_seed=seed, **{LINK: width}
        )

    def advantage(
        self, findings: Findings, design: str, placement: str, width: int | None = None
    ) -> float:
        """Return the cycles of a design over the cycles of the dynamic design, placed equally."""
        other = self.cycles(findings, design, placement, width)
        return other / self.cycles(findings, DYNAMIC, placement, width)

    def bare(self, findings: Findings, design: str) -> float:
        return self.cycles(findings, design, "together")


def _together() -> Space:
    return grid(placement=("together",), placement_seed=(0,)) * _links((None,))


def _apart() -> Space:
    return grid(placement=tuple(WAYS), placement_seed=(0,)) * _links(WIDTHS)


def _again() -> Space:
    return grid(placement=("place", "random"), placement_seed=SEEDS[1:]) * _links((NARROWEST,))


def _links(widths: tuple[int | None, ...]) -> Space:
    return zipped({LINK: widths, INJECTION: widths})


def _layer(layer: Layer, side: int) -> Workload:
    fixed: dict[str, str | int] = {
        "part": "moe",
        "model": layer.model,
        "batch": layer.batch,
        "routing": routing(layer.trace),
        "flops_per_cycle": FLOPS_PER_CYCLE,
    }
    designs: dict[str, dict[str, str | int]] = {
        f"static {rows}": {"tiling": "static", "tile_n": rows} for rows in (16, 32, 64)
    }
    return Workload(layer.title, side, fixed, {**designs, DYNAMIC: {"tiling": "dynamic"}})


WORKLOADS: Final = (
    _layer(QWEN_64, 48),
    _layer(MIXTRAL_64, 13),
    Workload(
        "attention, 64 requests",
        14,
        {"part": "attention", "kv": TRACE_15.path, "requests": 64},
        {each: {"strategy": each} for each in ("coarse", "interleaved", DYNAMIC)},
    ),
)


def study() -> Study:
    return Study(
        program=PROGRAMS / "placed.py",
        hardware=PROGRAMS / "hardware/mesh_paper.toml",
        question="What do distance and congestion cost, and are dynamic designs still faster?",
        mode="timing",
        space=sum((each.space for each in WORKLOADS), Space(())),
        tables=(
            StudyTable(
                "What distance and congestion cost",
                (
                    "workload",
                    "design",
                    "sites",
                    "cycles on one site",
                    "distance alone, % more",
                    *(f"links of {width}, % more" for width in WIDTHS[1:]),
                ),
                costs,
                "Cycles over the cycles with all units on one site.",
            ),
            StudyTable(
                "What a good placement saves",
                ("workload", "design", "found, cycles", "random / found", "row by row / found"),
                savings,
                f"With links of {NARROWEST} bytes per cycle. Found and random sites have three "
                "seeds each: a cell is the range over 3 runs, 9 ratios (random) or 3 (row by row).",
            ),
            StudyTable(
                "How many times faster the dynamic design is",
                (
                    "workload",
                    "than",
                    "on one site",
                    "found, distance alone",
                    *(f"found, {width}" for width in WIDTHS[1:]),
                    f"found, {NARROWEST}, three seeds",
                    f"random, {NARROWEST}",
                    f"row by row, {NARROWEST}",
                ),
                advantages,
                "Below 1 it is slower. With three seeds, a cell is the range of 9 ratios.",
            ),
        ),
        pictures=(
            Picture(
                "floor",
                "Cycles by the width of links",
                draw,
                "Cycles of the dynamic design (orange) and of the fastest other one (blue), over "
                "their cycles with all units on one site. Brackets name the placement.",
            ),
        ),
    )


def costs(findings: Findings) -> Iterator[tuple[object, ...]]:
    for workload in WORKLOADS:
        for design in workload.designs:
            bare = workload.bare(findings, design)
            for placement, called in WAYS.items():
                more = (
                    100 * workload.cycles(findings, design, placement, width) / bare - 100
                    for width in WIDTHS
                )
                yield workload.title, design, called, bare, *(round(each, 1) for each in more)


def savings(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield the savings of sites from ``place`` with narrow links."""
    for workload in WORKLOADS:
        for design in workload.designs:
            placed = _seeds(findings, workload, design, "place")
            drawn = _seeds(findings, workload, design, "random")
            by_rows = workload.cycles(findings, design, "rows", NARROWEST)
            yield (
                workload.title,
                design,
                _span(placed, ",.0f"),
                _span([other / ours for other in drawn for ours in placed]),
                _span([by_rows / ours for ours in placed]),
            )


def advantages(findings: Findings) -> Iterator[tuple[object, ...]]:
    """Yield the cycles of each static design over those of the dynamic design, placed equally."""
    for workload in WORKLOADS:
        for design in workload.designs:
            if design == DYNAMIC:
                continue
            ratio = partial(workload.advantage, findings, design)
            others = _seeds(findings, workload, design, "place")
            dynamic = _seeds(findings, workload, DYNAMIC, "place")
            yield (
                workload.title,
                design,
                round(ratio("together"), 3),
                *(round(ratio("place", width), 3) for width in WIDTHS),
                _span([other / ours for other in others for ours in dynamic], ".3f"),
                round(ratio("random", NARROWEST), 3),
                round(ratio("rows", NARROWEST), 3),
            )


def _seeds(findings: Findings, workload: Workload, design: str, placement: str) -> list[float]:
    return [workload.cycles(findings, design, placement, NARROWEST, seed) for seed in SEEDS]


def _span(values: list[float], form: str = ".2f") -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(11, 4.2)
    panels = figure.subplots(1, len(WORKLOADS), squeeze=False)[0]
    styles = {"place": "-", "random": ":", "rows": "--"}
    labels = ["none", *map(str, WIDTHS[1:])]
    for axes, workload in zip(panels, WORKLOADS, strict=True):
        others = [each for each in workload.designs if each != DYNAMIC]
        fastest = min(others, key=lambda each: workload.bare(findings, each))
        for design, colour in ((fastest, COLOURS["static"]), (DYNAMIC, COLOURS["dynamic"])):
            bare = workload.bare(findings, design)
            for placement, style in styles.items():
                times = [
                    workload.cycles(findings, design, placement, width) / bare for width in WIDTHS
                ]
                axes.plot(
                    range(len(WIDTHS)),
                    times,
                    style,
                    color=colour,
                    marker="o",
                    markersize=3,
                    label=f"{design} ({WAYS[placement]})",
                )
        axes.set_xticks(range(len(WIDTHS)), labels)
        axes.set_ylim(bottom=0.9)
        named(axes, workload.title, "limit of links, bytes a cycle", "times the cycles on one site")
        axes.legend(fontsize=7, handlelength=4)

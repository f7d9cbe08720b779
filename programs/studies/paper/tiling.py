"""Static tiles and the dynamic tile: the text's claims about figures 9 and 10.

The authors give compute units 4096 operations per cycle for static tiles, and 6400 for dynamic
tiles. For static tiles, they count the memory of all of Qwen's 128 experts, and for dynamic tiles
only of experts with tokens. All experts of Mixtral get tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from fabric import Findings
from paper.claims import Found, number
from paper.published import ACTIVE_EXPERTS, ALL_EXPERTS
from paper.workloads import MIXTRAL_64, MIXTRAL_1024, QWEN_64, QWEN_1024, Layer

MEMORY: Final = {"all experts": ALL_EXPERTS, "active experts": ACTIVE_EXPERTS}
"""The metrics of memory, by the experts that they count."""

_OF_DYNAMIC: Final = "active experts"
"""The experts that the authors count for dynamic tiles."""

EQUAL_FLOPS: Final = 4096
PUBLISHED_FLOPS: Final = 6400


@dataclass(frozen=True)
class Design:
    cycles: float
    on_chip_bytes: float


Measure: TypeAlias = Callable[[Mapping[int, Design], Design], float]
"""A function of the static designs, by the rows of a tile, and of the dynamic design."""


def designs(
    findings: Findings, layer: Layer, static: str, dynamic: str, flops_per_cycle: int
) -> tuple[dict[int, Design], Design]:
    """Return the static designs of a layer, by the rows of a tile, and the dynamic one.

    ``static`` and ``dynamic`` name the experts that are counted, see ``MEMORY``.
    """
    size = {"model": layer.model, "batch": layer.batch}

    def design(counted: str, **tiling: object) -> Design:
        cycles = number(findings, "cycles", **size, **tiling)
        return Design(cycles, number(findings, MEMORY[counted], **size, **tiling))

    fixed = {each: design(static, tiling="static", tile_n=each) for each in layer.tiles}
    return fixed, design(dynamic, tiling="dynamic", flops_per_cycle=flops_per_cycle)


@dataclass(frozen=True)
class Comparison:
    """A number that compares static tiles with the dynamic one.

    Attributes:
        of_cycles, of_memory: whether it compares cycles, and whether it compares memory.
        counted: the experts that the authors count for static tiles (see ``MEMORY``).
        unpublished: information that is missing in the text.
        note: our interpretation, if information is missing.
    """

    layer: Layer
    measure: Measure
    of_cycles: bool = False
    of_memory: bool = False
    counted: str = "all experts"
    unpublished: str = ""
    note: str = ""

    def __call__(self, findings: Findings) -> Found:
        """Compute it as the authors do, and with equal resources if the authors' are unequal."""
        published = self._measured(findings, self.counted, _OF_DYNAMIC, PUBLISHED_FLOPS)
        unequal_memory = self.of_memory and self.layer.idle_experts and self.counted != _OF_DYNAMIC
        equal = {}
        for counted in MEMORY if unequal_memory else (_OF_DYNAMIC,):
            how = ["4096 FLOPs per cycle on both sides"] if self.of_cycles else []
            if unequal_memory:
                how.append(f"the memory of {counted} on both sides")
            if how:
                value = self._measured(findings, counted, counted, EQUAL_FLOPS)
                equal[" and ".join(how)] = value
        return Found((published,), equal, self.note, self.unpublished)

    def _measured(self, findings: Findings, static: str, dynamic: str, flops: int) -> float:
        return self.measure(*designs(findings, self.layer, static, dynamic, flops))


def speedup(layer: Layer, tile_n: int) -> Comparison:
    """Return the speed-up of the dynamic tile over a static one."""
    return Comparison(layer, lambda fixed, ours: fixed[tile_n].cycles / ours.cycles, of_cycles=True)


def _slowdown_percent(layer: Layer, tile_n: int) -> Comparison:
    return Comparison(
        layer, lambda fixed, ours: 100 * (ours.cycles / fixed[tile_n].cycles - 1), of_cycles=True
    )


def _saving(layer: Layer, tile_n: int, counted: str = "all experts") -> Comparison:
    return Comparison(
        layer,
        lambda fixed, ours: fixed[tile_n].on_chip_bytes / ours.on_chip_bytes,
        of_memory=True,
        counted=counted,
    )


def _requirement(layer: Layer, tile_n: int) -> Comparison:
    return Comparison(
        layer, lambda fixed, ours: ours.on_chip_bytes / fixed[tile_n].on_chip_bytes, of_memory=True
    )


def improvement(layer: Layer) -> Comparison:
    """Return the Pareto improvement distance.

    The distance to one static design is the larger of two ratios: of cycles, and of memory. The
    result is the least distance to the static designs on the Pareto front.
    """

    def measure(fixed: Mapping[int, Design], ours: Design) -> float:
        return min(
            max(each.cycles / ours.cycles, each.on_chip_bytes / ours.on_chip_bytes)
            for each in front(fixed.values())
        )

    return Comparison(layer, measure, of_cycles=True, of_memory=True)


def front(designs: Iterable[Design]) -> list[Design]:
    """Return the designs that no other design dominates in cycles and memory."""
    kept: list[Design] = []
    for design in sorted(designs, key=lambda each: (each.cycles, each.on_chip_bytes)):
        if not kept or design.on_chip_bytes < kept[-1].on_chip_bytes:
            kept.append(design)
    return kept


BATCH_64: Final[Mapping[str, Comparison]] = {
    "Mixtral b64 dynamic vs tile=16 speedup (same on-chip memory)": speedup(MIXTRAL_64, 16),
    "Mixtral b64 on-chip memory saving vs tile=32": _saving(MIXTRAL_64, 32),
    "Mixtral b64 dynamic cycles relative to tile=32": _slowdown_percent(MIXTRAL_64, 32),
    "Qwen b64 dynamic vs tile=8 speedup": speedup(QWEN_64, 8),
    "Qwen b64 on-chip saving vs tile=8": _saving(QWEN_64, 8),
    "Qwen b64 on-chip saving vs tile=64": _saving(QWEN_64, 64),
    "Qwen b64 dynamic cycles relative to tile=64": _slowdown_percent(QWEN_64, 64),
    "PID Mixtral b64": improvement(MIXTRAL_64),
    "PID Qwen b64": improvement(QWEN_64),
}
BATCH_1024: Final[Mapping[str, Comparison]] = {
    "Mixtral b1024 dynamic vs tile=128 speedup": speedup(MIXTRAL_1024, 128),
    "Mixtral b1024 memory of dynamic relative to tile=128": _requirement(MIXTRAL_1024, 128),
    "Mixtral b1024 dynamic vs tile=256 speedup": speedup(MIXTRAL_1024, 256),
    "PID Mixtral b1024": improvement(MIXTRAL_1024),
}
"""The claims of section 5.2, by their text in the table."""

_ANNOTATED: Final = "bars annotated"


def _guessed(comparison: Comparison) -> Comparison:
    return replace(
        comparison,
        unpublished="The text does not name the compared bars.",
        note="Computed for tile=1024 of Mixtral at batch 1024.",
    )


FIRST_VERSION: Final[Mapping[tuple[str, str], Comparison]] = {
    (_ANNOTATED, "3.8"): _guessed(speedup(MIXTRAL_1024, 1024)),
    (_ANNOTATED, "3.7"): _guessed(_saving(MIXTRAL_1024, 1024)),
    ("Qwen tile=1024 memory ratio", "8.1"): _saving(QWEN_1024, 1024, "active experts"),
}
"""Comparisons in pictures of the paper's first version, by their text and value."""

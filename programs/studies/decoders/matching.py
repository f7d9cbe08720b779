"""The static tile that a dynamic tile is compared with, and the comparison."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Final

from decoders.points import ASSUMED, TILES, Decoder, Parameters
from fabric import Findings

PAPER: Final = "on_chip_requirement_bytes"
"""On-chip bytes by the equations of the paper, for all experts on both sides."""

ARTIFACT: Final = "on_chip_requirement_artifact_bytes"
"""On-chip bytes by the equations of the authors' scripts, for all experts on both sides."""

_IDLE: Final = "extra.on_chip_requirement_artifact_idle_bytes"


@dataclass(frozen=True)
class Layer:
    """The costs of a layer in one layout, as a mean if a study has several layers.

    Attributes:
        bytes_: on-chip bytes, by accounting.
        active_bytes: the bytes of ``ARTIFACT`` without experts and regions that get no token.
        compute: FLOPs per cycle of all units together.
    """

    setting: Parameters
    cycles: float
    bytes_: dict[str, float]
    active_bytes: float
    compute: float


@dataclass(frozen=True)
class Comparison:
    """A decoder with all three optimisations, and static decoders.

    Attributes:
        memory_matched, performance_matched: the static tiles of figure 17.
    """

    ours: Layer
    static: tuple[Layer, ...]
    memory_matched: Layer
    performance_matched: Layer

    def speedup(self, other: Layer) -> float:
        return other.cycles / self.ours.cycles

    def saved_bytes(self, other: Layer, accounting: str) -> float:
        """Return the part of the other layout's bytes that ours saves."""
        return 1 - self.ours.bytes_[accounting] / other.bytes_[accounting]

    def saved_bytes_unequally(self, other: Layer) -> float:
        """Return the saved part if only our side leaves out idle experts, as in figure 9."""
        return 1 - self.ours.active_bytes / other.bytes_[ARTIFACT]

    def saved_compute(self, other: Layer) -> float:
        """Return the part of the other layout's compute bandwidth that ours saves."""
        return 1 - self.ours.compute / other.compute


def compared(
    findings: Findings, decoder: Decoder, assumed: Parameters = ASSUMED
) -> Comparison | None:
    """Compare the layouts of a decoder, from a study with ``decoder.space(assumed)``.

    None if a run did not complete.
    """
    common = decoder.named | assumed
    ours = _layer(findings, common, decoder.ours)
    static = {tile: _layer(findings, common, decoder.static(tile)) for tile in TILES}
    complete = {tile: each for tile, each in static.items() if each is not None}
    if ours is None or len(complete) < len(static):
        return None
    return Comparison(
        ours=ours,
        static=tuple(complete.values()),
        memory_matched=complete[decoder.memory_matched],
        performance_matched=complete[decoder.performance_matched],
    )


def _layer(findings: Findings, common: Parameters, layout: Parameters) -> Layer | None:
    """Return the mean costs of a layer; None if one of its runs did not complete."""
    outcomes = findings.matching(**common, **layout)

    def mean(metric: str) -> float:
        values = (each.numbers[metric] for each in outcomes)
        return fmean(value for value in values if isinstance(value, int))

    if not outcomes or any(each.status != "completed" for each in outcomes):
        return None
    return Layer(
        setting=layout,
        cycles=mean("cycles"),
        bytes_={each: mean(each) for each in (PAPER, ARTIFACT)},
        active_bytes=mean(ARTIFACT) - mean(_IDLE),
        compute=mean("allocated_flops_per_cycle"),
    )

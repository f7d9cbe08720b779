"""Which static tile a dynamic one is compared with, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from decoders.points import ASSUMED, TILES, Decoder, Parameters
from fabric import Findings

__all__ = ["ARTIFACT", "PAPER", "Comparison", "Layer", "compared"]

PAPER: Final = "on_chip_requirement_bytes"
"""The equations of the paper: all experts, both sides."""

ARTIFACT: Final = "on_chip_requirement_artifact_bytes"
"""Those of the authors' scripts: all experts, both sides."""

_IDLE: Final = "extra.on_chip_requirement_artifact_idle_bytes"


@dataclass(frozen=True)
class Layer:
    """What a layer takes in one layout.

    Attributes:
        setting: the layout.
        cycles: of the layer.
        bytes_: on chip, by accounting.
        active_bytes: those of ``ARTIFACT`` without experts and regions that get no token.
        compute: FLOPs per cycle of all units together.
    """

    setting: Parameters
    cycles: float
    bytes_: dict[str, float]
    active_bytes: float
    compute: float


@dataclass(frozen=True)
class Comparison:
    """A decoder with all three optimisations and static ones.

    Attributes:
        ours: with all three.
        static: every static tile.
        memory_matched: the static tile whose bytes are nearest to those of dynamic tiles before
            regions are shared, which is what tiles decide.
        performance_matched: the static tile whose cycles are nearest to ours.
    """

    ours: Layer
    static: tuple[Layer, ...]
    memory_matched: Layer
    performance_matched: Layer

    def speedup(self, other: Layer) -> float:
        """Return how many times as long the other one takes."""
        return other.cycles / self.ours.cycles

    def saved_bytes(self, other: Layer, accounting: str) -> float:
        """Return which part of the other one's bytes we do not need."""
        return 1 - self.ours.bytes_[accounting] / other.bytes_[accounting]

    def saved_bytes_unequally(self, other: Layer) -> float:
        """Return the same where only our idle experts are left out, as in figure 9."""
        return 1 - self.ours.active_bytes / other.bytes_[ARTIFACT]

    def saved_compute(self, other: Layer) -> float:
        """Return which part of the other one's compute bandwidth we do not need."""
        return 1 - self.ours.compute / other.compute


def compared(
    findings: Findings,
    decoder: Decoder,
    accounting: str = PAPER,
    assumed: Parameters = ASSUMED,
    first_layer: int | None = None,
) -> Comparison | None:
    """Compare the layouts of a decoder; None where a run did not complete.

    Args:
        findings: of a study with ``decoder.space(assumed)``.
        decoder: which.
        accounting: of the bytes by which memory is matched.
        assumed: the rest.
        first_layer: the number of the layer, where the study has several.
    """
    common = decoder.named | assumed
    if first_layer is not None:
        common = common | {"first_layer": first_layer}
    ours = _layer(findings, common, decoder.ours)
    unshared = _layer(findings, common, decoder.unshared)
    static = [_layer(findings, common, decoder.static(tile)) for tile in TILES]
    complete = [each for each in static if each is not None]
    if ours is None or unshared is None or len(complete) < len(static):
        return None
    wanted = unshared.bytes_[accounting]
    return Comparison(
        ours=ours,
        static=tuple(complete),
        memory_matched=min(complete, key=lambda each: abs(each.bytes_[accounting] - wanted)),
        performance_matched=min(complete, key=lambda each: abs(each.cycles - ours.cycles)),
    )


def _layer(findings: Findings, common: Parameters, layout: Parameters) -> Layer | None:
    def of(metric: str) -> float | None:
        return findings.value(metric, **common, **layout)

    cycles, paper, artifact = of("cycles"), of(PAPER), of(ARTIFACT)
    idle, compute = of(_IDLE), of("allocated_flops_per_cycle")
    if cycles is None or paper is None or artifact is None or idle is None or compute is None:
        return None
    return Layer(layout, cycles, {PAPER: paper, ARTIFACT: artifact}, artifact - idle, compute)

"""The claims of section 5.5 about figure 17, computed again.

The authors publish the bars, but neither the graph nor the traces. So our ratio proves nothing,
whether it is near the authors' ratio or not. Every claim has the value from the bars, our value,
and a description of its computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from paper.claims import Found, claim, published_claim
from paper.printed import Printed

from decoders.matching import ARTIFACT, PAPER, Comparison, Layer, compared
from decoders.points import DECODERS, Decoder
from fabric import Claim, ConfigurationError, Findings

_MIXTRAL, _QWEN = DECODERS


@dataclass(frozen=True)
class Published:
    """A number of the text.

    Attributes:
        against: the resource that is equal for the static tile, memory or performance.
        what: the speed-up, the bytes saved or the compute bandwidth saved.
        text: the claim's text in the table of claims.
    """

    decoder: Decoder
    against: Literal["memory", "performance"]
    what: Literal["speed-up", "bytes saved", "compute saved"]
    text: str

    @property
    def claim(self) -> Claim:
        return claim(self.text, self._computed)

    @property
    def value(self) -> float:
        """The number in the text. A saving is a fraction."""
        (end,) = Printed.parse(published_claim(self.text).value).ends
        return end / self._scale

    @property
    def of_bars(self) -> float:
        """The number from the printed bars. A saving is a fraction."""
        (value,) = published_claim(self.text).of_points
        return value / self._scale

    @property
    def _scale(self) -> int:
        return 1 if self.what == "speed-up" else 100

    def found(self, comparison: Comparison) -> float:
        """Return our number. Bytes follow the paper's equations on both sides."""
        other = self._other(comparison)
        if self.what == "bytes saved":
            return comparison.saved_bytes(other, PAPER)
        if self.what == "compute saved":
            return comparison.saved_compute(other)
        return comparison.speedup(other)

    def _other(self, comparison: Comparison) -> Layer:
        if self.against == "memory":
            return comparison.memory_matched
        return comparison.performance_matched

    def _computed(self, findings: Findings) -> Found:
        comparison = compared(findings, self.decoder)
        if comparison is None:
            raise ConfigurationError(f"a run of {self.decoder.title} did not complete")
        other = self._other(comparison)
        note = f"{self.decoder.title}, against tile {other.setting['tile_n']}."
        if self.what == "speed-up":
            each = (
                f"{one.setting['tile_n']} {comparison.speedup(one):.2f}"
                for one in comparison.static
            )
            note += f" Against all tiles: {', '.join(each)}."
        elif self.what == "bytes saved":
            artifact = comparison.saved_bytes(other, ARTIFACT)
            unequal = comparison.saved_bytes_unequally(other)
            note += (
                f" By the authors' equations {artifact:.1%}, "
                f"with idle experts on the other side only {unequal:.1%}."
            )
        return Found(
            (self._scale * self.found(comparison),),
            note=note,
            unpublished="The graph behind the bars and its traces are not public.",
        )


_BYTES: Final = "on-chip memory reduction vs"

PUBLISHED: Final = (
    Published(_MIXTRAL, "memory", "speed-up", "Mixtral speedup vs memory-matched"),
    Published(_QWEN, "memory", "speed-up", "Qwen speedup vs memory-matched"),
    Published(_QWEN, "memory", "bytes saved", f"Qwen {_BYTES} memory-matched"),
    Published(_QWEN, "memory", "compute saved", "Qwen compute reduction vs memory-matched"),
    Published(_MIXTRAL, "performance", "bytes saved", f"Mixtral {_BYTES} performance-matched"),
    Published(_QWEN, "performance", "bytes saved", f"Qwen {_BYTES} performance-matched"),
    Published(_MIXTRAL, "performance", "speed-up", "Mixtral speedup vs performance-matched"),
    Published(_QWEN, "performance", "speed-up", "Qwen speedup vs performance-matched"),
)
CLAIMS: Final = tuple(each.claim for each in PUBLISHED)

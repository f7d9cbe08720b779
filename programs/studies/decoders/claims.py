"""What section 5.5 says of figure 17, computed again.

The authors publish neither graph nor traces nor tiles of it: a ratio of ours that is near theirs
proves as little as one that is not. Every claim comes with our value, how it was computed, and what
would have to be known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from paper.claims import Found, claim
from paper.printed import Printed

from decoders.matching import ARTIFACT, PAPER, Comparison, Layer, compared
from decoders.points import DECODERS, Decoder
from fabric import Claim, Findings, Judgement, Verdict

__all__ = ["CLAIMS", "PUBLISHED", "Published"]

_MIXTRAL, _QWEN = DECODERS


@dataclass(frozen=True)
class Published:
    """A number of the text.

    Attributes:
        decoder: of which model.
        against: which static tile.
        what: speed-up, bytes saved or compute bandwidth saved.
        text: as the table of claims has it.
        printed: the number.
    """

    decoder: Decoder
    against: Literal["memory", "performance"]
    what: Literal["speed-up", "bytes saved", "compute saved"]
    text: str
    printed: str

    @property
    def claim(self) -> Claim:
        """The sentence."""
        return claim(self.text, self._computed, self.printed)

    @property
    def value(self) -> float:
        """As published; a part of 1 where something is saved."""
        return Printed.parse(self.printed).ends[0] / (1 if self.what == "speed-up" else 100)

    def found(self, comparison: Comparison) -> float:
        """Return our number, bytes by the paper's equations, the same for both sides."""
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

    def _computed(self, findings: Findings) -> Found | Judgement:
        comparison = compared(findings, self.decoder)
        if comparison is None:
            return Judgement("", Verdict.UNPUBLISHED, "A run of it did not complete.")
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
        scale = 1 if self.what == "speed-up" else 100
        return Found(
            (scale * self.found(comparison),),
            note=note,
            unpublished="Graph, traces and tiles behind the printed ratio are not public.",
        )


_PERFORMANCE: Final = (
    "On-chip memory reduction vs performance-matched (Mixtral/Qwen)",
    "Speedup vs performance-matched (Mixtral/Qwen)",
)

PUBLISHED: Final = (
    Published(_MIXTRAL, "memory", "speed-up", "Mixtral speedup vs memory-matched", "1.27"),
    Published(_QWEN, "memory", "speed-up", "Qwen speedup vs memory-matched", "1.15"),
    Published(
        _QWEN, "memory", "bytes saved", "Qwen on-chip memory reduction vs memory-matched", "69%"
    ),
    Published(_QWEN, "memory", "compute saved", "Qwen compute reduction vs memory-matched", "54%"),
    Published(_MIXTRAL, "performance", "bytes saved", _PERFORMANCE[0], "20%"),
    Published(_QWEN, "performance", "bytes saved", _PERFORMANCE[0], "88%"),
    Published(_MIXTRAL, "performance", "speed-up", _PERFORMANCE[1], "1.05"),
    Published(_QWEN, "performance", "speed-up", _PERFORMANCE[1], "1.14"),
)
CLAIMS: Final = tuple(each.claim for each in PUBLISHED)

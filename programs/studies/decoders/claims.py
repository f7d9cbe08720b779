"""What section 5.5 says of figure 17, computed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from decoders.matching import ARTIFACT, PAPER, Comparison, Layer, compared
from decoders.points import DECODERS, Decoder
from fabric import Claim, Findings, Judgement, Verdict

__all__ = ["CLAIMS", "PUBLISHED", "Published"]

_MIXTRAL, _QWEN = DECODERS
_CLOSE: Final = 0.1
"""A ratio this near to the published one counts as reproduced, in spite of what had to be assumed.
Of what is saved, the rest is the ratio.
"""


@dataclass(frozen=True)
class Published:
    """A number of the text.

    Attributes:
        decoder: of which model.
        against: which static tile.
        what: speed-up, bytes saved or compute bandwidth saved.
        value: as published; a part of 1 where something is saved.
    """

    decoder: Decoder
    against: Literal["memory", "performance"]
    what: Literal["speedup", "bytes", "compute"]
    value: float

    @property
    def claim(self) -> Claim:
        """The sentence."""
        told = {
            "speedup": f"{self.value:.2f} times faster than",
            "bytes": f"{self.value:.0%} less on-chip memory than",
            "compute": f"{self.value:.0%} less allocated compute than",
        }[self.what]
        return Claim(
            text=f"{self.decoder.title}: {told} static tiles that are {self.against}-matched",
            location="section 5.5, figure 17",
            published=_told(self.what, self.value),
            judge=self._judge,
        )

    def other(self, comparison: Comparison) -> Layer:
        """Return the static tile."""
        if self.against == "memory":
            return comparison.memory_matched
        return comparison.performance_matched

    def found(self, comparison: Comparison) -> float:
        """Return our number with equal accounting, by the paper's equations."""
        other = self.other(comparison)
        if self.what == "bytes":
            return comparison.saved_bytes(other, PAPER)
        if self.what == "compute":
            return comparison.saved_compute(other)
        return comparison.speedup(other)

    def _judge(self, findings: Findings) -> Judgement:
        comparison = compared(findings, self.decoder)
        if comparison is None:
            return Judgement("", Verdict.UNPUBLISHED, "a run of it did not complete")
        found, other = self.found(comparison), self.other(comparison)
        notes = [f"tile_n={other.setting['tile_n']}"]
        if self.what == "speedup":
            each = (
                f"{one.setting['tile_n']}: {comparison.speedup(one):.2f}"
                for one in comparison.static
            )
            notes.append(f"all tiles: {', '.join(each)}")
        verdict = Verdict.REPRODUCED if self._is_close(found) else Verdict.UNPUBLISHED
        if self.what == "bytes":
            artifact = comparison.saved_bytes(other, ARTIFACT)
            unequal = comparison.saved_bytes_unequally(other)
            notes.append(f"{artifact:.0%} by the authors' equations")
            notes.append(f"{unequal:.0%} by these where idle experts count on their side only")
            if verdict is Verdict.UNPUBLISHED and self._is_close(artifact):
                verdict = Verdict.REPRODUCED
            if verdict is Verdict.UNPUBLISHED and self._is_close(unequal):
                verdict = Verdict.UNEQUAL
        if verdict is Verdict.UNPUBLISHED:
            notes.append("graph, traces and tiles behind the published ratio are not public")
        return Judgement(_told(self.what, found), verdict, "; ".join(notes))

    def _is_close(self, found: float) -> bool:
        if self.what == "speedup":
            return abs(found / self.value - 1) <= _CLOSE
        return abs((1 - found) / (1 - self.value) - 1) <= _CLOSE


def _told(what: str, value: float) -> str:
    return f"{value:.2f}" if what == "speedup" else f"{value:.0%}"


PUBLISHED: Final = (
    Published(_MIXTRAL, "memory", "speedup", 1.27),
    Published(_QWEN, "memory", "speedup", 1.15),
    Published(_QWEN, "memory", "bytes", 0.69),
    Published(_QWEN, "memory", "compute", 0.54),
    Published(_MIXTRAL, "performance", "bytes", 0.20),
    Published(_QWEN, "performance", "bytes", 0.88),
    Published(_MIXTRAL, "performance", "speedup", 1.05),
    Published(_QWEN, "performance", "speedup", 1.14),
)
CLAIMS: Final = tuple(each.claim for each in PUBLISHED)

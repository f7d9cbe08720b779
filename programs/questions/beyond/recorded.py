"""Designs of a layer of experts, and the batches of tokens with recorded routing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from beyond.savings import PROGRAMS
from fabric import Space, grid, zipped

BATCH: Final = 64
_LONG: Final = 1024
_TILES: Final = (8, 16, 32, 64)
_TRACES: Final = PROGRAMS / "data/traces/expert_routing"


@dataclass(frozen=True)
class Layer:
    """A layer of experts.

    Attributes:
        model: its name in ``moe.py``.
        short, long: files with the recorded routings of 64 and of 1,024 tokens.
        regions: the studied numbers of regions.
    """

    name: str
    model: str
    short: str
    long: str
    regions: tuple[int, ...]

    @property
    def fixed(self) -> dict[str, str | int]:
        """The parameters of all designs. Channels are deep enough for shared regions."""
        return {"model": self.model, "batch": BATCH, "channel_depth": 1024}

    @property
    def recorded(self) -> dict[str, str | int]:
        """The parameters of all designs with the recorded batch of 64 tokens."""
        return self.fixed | {"routing": str(_TRACES / self.short)}

    @property
    def designs(self) -> Space:
        """Static tiles and the dynamic tile, each with all numbers of regions."""
        tilings = grid(tiling=["static"], tile_n=_TILES) + grid(tiling=["dynamic"])
        return tilings * grid(regions=self.regions)

    @property
    def batches(self) -> Space:
        """The recorded batch of 64 tokens, and the recorded 1,024 tokens in batches of 64."""
        firsts = range(0, _LONG, BATCH)
        return zipped(
            routing=[str(_TRACES / self.short), *[str(_TRACES / self.long)] * len(firsts)],
            first_token=[0, *firsts],
        )


QWEN: Final = Layer(
    "Qwen3-30B-A3B",
    "qwen3-30b-a3b",
    "qwen_b64/032_012.npz",
    "qwen_b1024/022_016.npz",
    (128, 64, 32, 16, 8),
)
MIXTRAL: Final = Layer(
    "Mixtral-8x7B",
    "mixtral-8x7b",
    "mixtral_b64/008_010.npz",
    "mixtral_b1024/019_009.npz",
    (8, 4, 2),
)

"""Layers of whole decoders in the layouts that figure 17 compares.

The bytes and the compute of the printed bars determine the experts. Tiles of their weights have 48
columns (Qwen) or 64 (Mixtral). Qwen's experts share 32 regions, and Mixtral's have one each. Every
unit has 1,024 FLOPs per cycle. Static tiles have 8 and 64 rows (Qwen) or 16 and 32 (Mixtral).
Attention has four regions. ``tests/symbolic/test_published.py`` derives this. All else is assumed:

* Cache lengths are from the median class, as in the caption, which has three traces.
* Every layer routes like the one recorded layer of the model, with renamed experts.
* The units of attention and of projections have 1,024 FLOPs per cycle, too.
* Heads have 128 columns, as in the models. The authors' attention has 64.
* Static parallelisation assigns requests in turn, as in figure 14.
* A layer is the graph of ``decoder.py``, without embedding and output vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from paper.tables import PROGRAMS, cache_lengths, routing
from paper.workloads import listed

from fabric import Space

Parameters: TypeAlias = dict[str, str | int | float | bool | None]

PROGRAM: Final = PROGRAMS / "decoder.py"
TILES: Final = (8, 16, 32, 64)
"""Rows of the static tiles, as in figure 9."""


ASSUMED: Final[Parameters] = {
    "kv": cache_lengths("b64/conv_stdev0995_3123_3186.npy"),
    "attention_regions": 4,
    "flops_per_cycle": 1024,
    "tile_p": 16,
}


@dataclass(frozen=True)
class Decoder:
    """A model of figure 17.

    Attributes:
        model: its name in ``decoder.py``.
        regions: the number of regions that share experts with all three optimisations.
        tile_f: columns of a weight tile of an expert.
        memory_matched, performance_matched: rows of the static tiles of figure 17.
        routing: the path of the recorded layer.
    """

    title: str
    model: str
    layers: int
    experts: int
    regions: int
    tile_f: int
    memory_matched: int
    performance_matched: int
    routing: str

    @property
    def named(self) -> Parameters:
        """The parameters that all its points have."""
        return {"model": self.model, "routing": self.routing, "tile_f": self.tile_f}

    @property
    def ours(self) -> Parameters:
        return {"tiling": "dynamic", "parallelisation": "dynamic", "regions": self.regions}

    @property
    def unshared(self) -> Parameters:
        """Dynamic tiles and parallelisation, and a region for every expert."""
        return self.ours | {"regions": self.experts}

    def static(self, tile: int) -> Parameters:
        """Return the parameters without optimisations, with static tiles of ``tile`` rows."""
        return {
            "tiling": "static",
            "parallelisation": "interleaved",
            "regions": self.experts,
            "tile_n": tile,
        }

    @property
    def layouts(self) -> list[Parameters]:
        """All static tiles, and all three optimisations."""
        return [*(self.static(tile) for tile in TILES), self.ours]

    def space(self, assumed: Parameters) -> Space:
        return listed(self.named | assumed | each for each in self.layouts)


DECODERS: Final = (
    Decoder(
        "Mixtral-8x7B", "mixtral-8x7b", 32, 8, 8, 64, 16, 32, routing("mixtral_b64/008_010.npz")
    ),
    Decoder(
        "Qwen3-30B-A3B", "qwen3-30b-a3b", 48, 128, 32, 48, 8, 64, routing("qwen_b64/032_012.npz")
    ),
)

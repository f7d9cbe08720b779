"""The paper's workloads: mixture-of-experts layers with routings, and attention with caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric import Space, grid, zipped
from paper.tables import cache_lengths, routing, rows


def listed(settings: Iterable[Mapping[str, str | int | float | bool | None]]) -> Space:
    single = ({name: (value,) for name, value in each.items()} for each in settings)
    return sum(map(zipped, single), Space(()))


@dataclass(frozen=True)
class Layer:
    """A mixture-of-experts layer under one routing.

    Attributes:
        title: the title of its panel.
        model, batch, regions, channel_depth: parameters of ``moe.py``.
        trace: the file of the routing.
        tiles: rows of the static tiles that the paper sweeps.
        idle_experts: whether some experts get no token.
    """

    title: str
    model: str
    batch: int
    regions: int
    channel_depth: int
    trace: str
    tiles: tuple[int, ...]
    idle_experts: bool = False

    @property
    def published_space(self) -> Space:
        """Static tiles with 4096 FLOPs per cycle and the dynamic tile with 6400, as published."""
        return self._alone * (self._static + grid(tiling=("dynamic",), flops_per_cycle=(6400,)))

    @property
    def space(self) -> Space:
        """As published, and also the dynamic tile with 4096 FLOPs per cycle."""
        return self._alone * (
            self._static + grid(tiling=("dynamic",), flops_per_cycle=(6400, 4096))
        )

    @property
    def _alone(self) -> Space:
        return zipped(
            model=(self.model,),
            batch=(self.batch,),
            regions=(self.regions,),
            channel_depth=(self.channel_depth,),
            routing=(routing(self.trace),),
        )

    @property
    def _static(self) -> Space:
        return grid(tiling=("static",), tile_n=self.tiles, flops_per_cycle=(4096,))


_DECODE: Final = (8, 16, 32, 64)
_PREFILL: Final = (16, 32, 64, 128, 256, 512, 1024)

MIXTRAL_64: Final = Layer(
    "Mixtral-8x7B, batch 64", "mixtral-8x7b", 64, 8, 2, "mixtral_b64/008_010.npz", _DECODE
)
QWEN_64: Final = Layer(
    "Qwen3-30B-A3B, batch 64", "qwen3-30b-a3b", 64, 128, 2, "qwen_b64/032_012.npz", _DECODE, True
)
MIXTRAL_1024: Final = Layer(
    "Mixtral-8x7B, batch 1024", "mixtral-8x7b", 1024, 8, 2, "mixtral_b1024/019_009.npz", _PREFILL
)
# With channels of two slots, static tiles of 16 deadlock. The authors used a depth of 1,024.
QWEN_1024: Final = Layer(
    "Qwen3-30B-A3B, batch 1024",
    "qwen3-30b-a3b",
    1024,
    128,
    1024,
    "qwen_b1024/022_016.npz",
    _PREFILL,
    True,
)

REGIONS: Final = {"static": (128, 64, 32, 16, 8, 4), "dynamic": (128, 64, 32, 16, 8, 4, 2)}
"""The numbers of regions that share the experts of Qwen's layer, by the tiling."""


def multiplexed(tiling: str) -> Space:
    """Return Qwen's layer of batch 64 with each number of regions. Static tiles have 32 rows."""
    layer = zipped(
        model=(QWEN_64.model,), batch=(QWEN_64.batch,), routing=(routing(QWEN_64.trace),)
    )
    rows = grid(tile_n=(32,)) if tiling == "static" else Space(((),))
    return layer * grid(tiling=(tiling,)) * rows * grid(regions=REGIONS[tiling])


BLOCK: Final = 16
"""Neighbouring requests that go to one region with coarse parallelisation of attention."""

KV_CLASSES: Final = ("low", "med", "high")
_UNPUBLISHED: Final = {
    "b80/conv_stdev0529_2025_2104.npy": "low",
    "b80/conv_stdev0531_0135_0214.npy": "low",
    "b80/conv_stdev0562_4181_4260.npy": "low",
    "b80/conv_stdev0986_3989_4068.npy": "med",
    "b80/conv_stdev0987_1891_1970.npy": "med",
    "b80/conv_stdev0987_4687_4766.npy": "med",
    "b80/conv_stdev1310_0815_0894.npy": "high",
    "b80/conv_stdev1334_3227_3306.npy": "high",
    "b80/conv_stdev1413_0981_1060.npy": "high",
}
"""Traces of the artifact without published cycles, with the artifact's classes."""


@dataclass(frozen=True)
class CacheTrace:
    """The key-value caches of the requests of one batch.

    Attributes:
        kv_class: the variation of lengths, ``low``, ``med`` or ``high``.
        path: the file of lengths, as a parameter of ``attention.py``.
    """

    batch: int
    kv_class: str
    path: str

    @property
    def deviation(self) -> int:
        """The standard deviation of the lengths, in tokens, from the name of the file."""
        return int(Path(self.path).stem.split("_")[1].removeprefix("stdev"))


def cache_traces(batch: int, kv_class: str | None = None) -> tuple[CacheTrace, ...]:
    """Return the traces of figure 21 of a batch (16, 64 or 80), in the order of their variation."""
    published = {row["trace"]: row["kv_class"] for row in rows("attention.csv")}
    traces = [
        CacheTrace(batch, own_class, cache_lengths(trace))
        for trace, own_class in (published | _UNPUBLISHED).items()
        if trace.startswith(f"b{batch}/") and kv_class in (None, own_class)
    ]
    return tuple(sorted(traces, key=lambda trace: trace.deviation))


TRACE_15: Final = next(each for each in cache_traces(64, "med") if each.deviation == 996)
"""The trace whose first requests are in figure 15."""

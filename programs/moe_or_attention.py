"""The paper's layers and its attention in one program, for studies that compare both.

Run:      python -m fabric run programs/moe_or_attention.py -p strategy=coarse
Computes: what moe.py or attention.py computes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import attention
import moe
from layers.models import ModelName

from fabric import Program
from fabric.extend import Bounds


def build(
    part: Literal["moe", "attention"] = "attention",
    model: ModelName = "qwen3-30b-a3b",
    batch: Annotated[int, Bounds(1)] = 64,
    tiling: Literal["static", "dynamic"] = "static",
    tile_n: int | None = None,
    tile_f: int = 64,
    regions: int | None = None,
    flops_per_cycle: int | None = None,
    channel_depth: int | None = None,
    routing: Path | None = None,
    strategy: Literal["coarse", "interleaved", "dynamic"] = "dynamic",
    kv: Path | None = None,
    requests: Annotated[int | None, Bounds(1)] = None,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire a layer of experts or the attention.

    ``part`` is ``moe`` or ``attention``. ``attention.py`` describes strategy, kv and requests, and
    ``moe.py`` describes all other parameters. None means the default of the chosen program.
    """
    both = {
        "tile_n": tile_n,
        "regions": regions,
        "flops_per_cycle": flops_per_cycle,
        "channel_depth": channel_depth,
    }
    chosen = {name: value for name, value in both.items() if value is not None}
    if part == "attention":
        return attention.build(strategy, kv, requests, seed=seed, **chosen)
    return moe.build(model, batch, tiling, tile_f=tile_f, routing=routing, seed=seed, **chosen)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fabric import Hardware, Program
from fabric.graph.hardware import description
from fabric.graph.loading.program_file import load_program
from tests.model.attention import attention
from tests.model.graph import Graph, Setting
from tests.model.moe import Layer, moe
from tests.model.swiglu import swiglu
from tests.programs.loading import PROGRAMS

DTYPES: dict[int, description.DtypeName] = {1: "float8_e4m3", 2: "bfloat16", 4: "float32"}
REGISTERS = ("wait_cycles", "choice_cycles", "end_cycles", "cost_cycles")
EXPERTS, TOP_K, HIDDEN, INTER = 8, 2, 64, 128  # of the model ``tiny``


@dataclass(frozen=True)
class Drawn:
    name: str
    setting: Setting
    parameters: dict[str, Any]
    arrays: dict[str, list[Any]]
    model: Callable[[], Graph]

    def program(self, folder: Path) -> Program:
        values_of = dict(self.parameters)
        for key, values in self.arrays.items():
            values_of[key] = folder / ("data.npz" if key == "routing" else "data.npy")
            if key == "routing":
                np.savez(values_of[key], data=np.array(values))
            else:
                np.save(values_of[key], np.array(values))
        words = [f"{key}={value}" for key, value in values_of.items()]
        return load_program(PROGRAMS / f"{self.name}.py", words, hardware(self.setting)).program


def hardware(setting: Setting) -> Hardware:
    return Hardware(
        hbm=description.FlatDescription(
            channels=setting.channels,
            request_bytes=setting.request,
            latency_cycles=setting.latency,
            initiation_interval_cycles=setting.interval,
            startup_cycles=setting.startup,
            requests_per_bundle=setting.bundle,
        ),
        on_chip=description.OnChipDescription(bytes_per_cycle=setting.on_chip),
        channel=description.ChannelDescription(depth=setting.depth, interval_cycles=setting.apart),
        registers=description.RegisterDescription(
            **dict(zip(REGISTERS, setting.registers, strict=True))
        ),
        compute=description.ComputeDescription(flops_per_cycle=setting.flops),
        tile=description.TileDescription(dtype=DTYPES[setting.element_bytes]),
    )


def draw_setting(random: Random) -> Setting:
    """Draw a machine; one in three has the paper's memory."""
    small = Setting(
        element_bytes=random.choice((1, 2, 4)),
        on_chip=random.choice((7, 64, 64, 256, 100_000)),
        depth=random.choice((1, 1, 2, 2, 3, 16, 1024)),
        flops=random.choice((1, 77, 1024, 4096, 10**6)) * 8,
    )
    if random.random() < 1 / 3:
        return small
    return Setting(
        element_bytes=small.element_bytes,
        on_chip=small.on_chip,
        depth=small.depth,
        flops=small.flops,
        channels=random.choice((1, 2, 3, 5, 8, 12, 32, 33)),
        request=random.choice((48, 64, 100, 512, 10**6)),
        latency=random.choice((0, 1, 2, 9)),
        interval=random.choice((1, 1, 2, 3, 7)),
        startup=random.choice((0, 0, 1, 14, 40)),
        bundle=random.randint(1, 8),
    )


def draw_moe(random: Random, *, early: bool = True) -> Drawn:
    """Draw a layer of few tokens; its routing is even, skewed, or always the same experts."""
    setting = replace(draw_setting(random), early=early)
    batch = random.choice((1, 2, 3, 5, 8, 13, 20, 40))
    popular = random.sample(range(EXPERTS), random.choice((2, 3, EXPERTS)))
    choice = [random.sample(popular, TOP_K) for _ in range(batch)]
    if random.random() < 0.3:  # an unpopular expert waits for the end of the tokens
        choice[0] = random.sample(range(EXPERTS), TOP_K)
    return routed(
        setting,
        choice,
        tile_n=None if random.random() < 0.4 else random.choice((1, 2, 3, 4, 8, 16)),
        tile_f=random.choice((128, 64, 32, 16)),
        regions=random.choice((8, 4, 4, 2, 2, 1)),
    )


def routed(
    setting: Setting,
    choice: list[list[int]],
    *,
    tile_n: int | None,
    tile_f: int = 64,
    regions: int,
) -> Drawn:
    parameters = {
        "model": "tiny",
        "batch": len(choice),
        "tiling": "dynamic" if tile_n is None else "static",
        "tile_n": tile_n or 16,
        "tile_f": tile_f,
        "regions": regions,
    }
    layer = Layer(HIDDEN, INTER, EXPERTS, choice, tile_n, tile_f, regions)
    return Drawn("moe", setting, parameters, {"routing": choice}, lambda: moe(setting, layer))


def draw_attention(random: Random) -> Drawn:
    """Draw few requests with short caches, in one to five regions."""
    setting = draw_setting(random)
    count = random.choice((1, 2, 4, 7, 17, 35))
    longest = random.choice((1, 40, 100, 200))
    lengths = [random.randrange(longest) for _ in range(count)]
    rows = random.choice((1, 8, 32, 33)) if longest < 100 else random.choice((16, 32, 50))
    regions = random.randint(1, 5)
    strategy = random.choice(("coarse", "interleaved", "dynamic", "dynamic"))
    parameters = {
        "strategy": strategy,
        "regions": regions,
        "tile_n": rows,
        "flops_per_cycle": setting.flops,
        "channel_depth": setting.depth,
    }
    return Drawn(
        "attention",
        setting,
        parameters,
        {"kv": lengths},
        lambda: attention(setting, strategy, lengths, regions, rows),
    )


def draw_swiglu(random: Random) -> Drawn:
    """Draw one to four blocks of rows and one to eight blocks of columns."""
    setting = draw_setting(random)
    tile_batch, tile_inter = random.choice((1, 3, 8)), random.choice((1, 5, 16))
    sizes = {
        "batch": tile_batch * random.randint(1, 4),
        "hidden": random.choice((1, 24, 64)),
        "inter": tile_inter * random.randint(1, 8),
        "tile_batch": tile_batch,
        "tile_inter": tile_inter,
    }
    return Drawn("swiglu", setting, dict(sizes), {}, lambda: swiglu(setting, **sizes))


DRAWN: dict[str, Callable[[Random], Drawn]] = {
    "moe": draw_moe,
    "attention": draw_attention,
    "swiglu": draw_swiglu,
}

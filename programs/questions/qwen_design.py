"""Which tile, how many regions and how many HBM channels for a layer of Qwen3-30B-A3B?

Run: python -m fabric study programs/questions/qwen_design.py -o qwen
"""

from __future__ import annotations

from pathlib import Path

from fabric import Study, geometric, grid

PROGRAMS = Path(__file__).parents[1]


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question="Which tile, how many regions and how many HBM channels for a layer of Qwen?",
        fixed={
            "model": "qwen3-30b-a3b",
            "batch": 64,
            "routing": str(PROGRAMS / "data/traces/expert_routing/qwen_b64/032_012.npz"),
            "channel_depth": 1024,
        },
        space=grid({"tile_n": geometric(8, 64), "regions": geometric(16, 128)})
        * grid({"hardware.hbm.channels": (16, 32)}),
        minimize=("cycles", "on_chip_requirement_bytes"),
    )

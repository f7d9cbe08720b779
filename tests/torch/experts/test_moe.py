"""The experts of Qwen3-MoE and the layer of programs/moe.py: the same bytes, as many cycles."""

from __future__ import annotations

from tests.programs.loading import PROGRAMS

ROUTING = PROGRAMS / "data/traces/expert_routing/qwen_b64/032_012.npz"
TILINGS = [("static", None), ("dynamic", None), ("static", 4), ("dynamic", 4)]
EXACT = (
    "off_chip_traffic_bytes",
    "hbm_bytes_moved",
    "on_chip_requirement_bytes",
    "flops",
    "allocated_flops_per_cycle",
)

"""Compares imported experts of Qwen3-MoE with programs/moe.py: equal bytes and operators.

They differ in what a module does not state. The program loads up weights before gate weights, which
transformers names in the other order. Its router weights come one by one, as [tokens, hits], not as
a row. In an imported program, channels after a fork or before the Reassemble have room for all
elements.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fabric import Report, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.programs.loading import DATA, program
from tests.torch.experts.modules import qwen_experts

ROUTING = DATA / "traces" / "expert_routing" / "qwen_b64" / "032_012.npz"
EXACT = (
    "off_chip_traffic_bytes",
    "hbm_bytes_moved",
    "on_chip_requirement_bytes",
    "flops",
    "allocated_flops_per_cycle",
)
CLOSE = 0.05


def imported(choice: NDArray[np.int64], sizes: tuple[int, int, int], schedule: Schedule) -> Report:
    hidden, inner, experts = sizes
    with torch.device("meta"):
        module = qwen_experts(hidden, inner, experts, choice.shape[1])
    for name, parameter in list(module.named_parameters()):
        empty = torch.empty(parameter.shape, dtype=torch.bfloat16)
        setattr(module, name, torch.nn.Parameter(empty, requires_grad=False))
    x = torch.empty(len(choice), hidden, dtype=torch.bfloat16)
    gates = torch.empty(choice.shape, dtype=torch.bfloat16)
    args = x, torch.tensor(choice), gates
    return simulate(from_torch(module, args, schedule=schedule), mode="timing")


def compare(ours: Report, theirs: Report) -> None:
    assert ours.status == theirs.status == "completed"
    for name in EXACT:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.cycles
    assert theirs.cycles
    assert abs(ours.cycles / theirs.cycles - 1) < CLOSE


@pytest.mark.parametrize(("tiling", "regions"), [("static", None), ("dynamic", 4), ("dynamic", 1)])
def test_imported_experts_equal_the_moe_program(
    tiling: str, regions: int | None, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    choice = random.random((40, 8)).argsort(axis=1)[:, :2]
    file = tmp_path / "routing.npz"
    np.savez(file, data=choice)

    theirs = program(
        "moe",
        model="tiny",
        batch=40,
        tiling=tiling,
        tile_n=8,
        tile_f=32,
        regions=regions,
        routing=file,
    )
    schedule = Schedule(ragged=tiling, tile_rows=8, tile_cols=32, regions=regions)  # type: ignore[arg-type]

    compare(imported(choice, (64, 128, 8), schedule), simulate(theirs, mode="timing"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("regions", [None, 32])
@pytest.mark.parametrize("tiling", ["static", "dynamic"])
def test_imported_qwen_experts_equal_the_moe_program(tiling: str, regions: int | None) -> None:
    with np.load(ROUTING) as archive:
        choice = archive["data"][:64].astype(np.int64)
    theirs = program("moe", tiling=tiling, regions=regions, routing=ROUTING)
    schedule = Schedule(ragged=tiling, tile_rows=16, tile_cols=64, regions=regions)  # type: ignore[arg-type]

    compare(imported(choice, (2048, 768, 128), schedule), simulate(theirs, mode="timing"))

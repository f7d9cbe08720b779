from __future__ import annotations

import pytest
import torch
from torch import nn

from fabric import CapacityError, Report, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.profiles import spread


class Block(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.RMSNorm(32)
        self.gate = nn.Linear(32, 48, bias=False)
        self.up = nn.Linear(32, 48, bias=False)
        self.down = nn.Linear(48, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def ran(schedule: Schedule) -> Report:
    module = nn.Sequential(Block(), Block()).eval()
    torch.manual_seed(1)
    program = from_torch(module, (torch.randn(16, 32),), schedule=schedule)
    report = simulate(program, mode="functional")
    assert report.status == "completed"
    assert report.verified, report.verification
    assert simulate(program, mode="timing").cycles == report.cycles
    return report


@pytest.mark.parametrize("order", spread(["weight", "row", "output"], 1))
def test_smaller_budget_spills_more(order: str) -> None:
    tiles = dict.fromkeys(("tile_rows", "tile_cols", "tile_inner"), 8)
    whole = ran(Schedule(order=order, **tiles))  # type: ignore[arg-type]
    moved = whole.off_chip_traffic_bytes
    assert moved is not None
    groups, traffic = [], []
    for budget in (20_000, 8_000, 1_000):
        report = ran(Schedule(order=order, on_chip_bytes=budget, **tiles))  # type: ignore[arg-type]

        assert report.extra["largest_group_buffer_bytes"] <= budget
        groups.append(report.extra["kernel_groups"])
        traffic.append(report.extra["spilled_traffic_bytes"])
        assert report.off_chip_traffic_bytes is not None
        assert report.off_chip_traffic_bytes >= moved + traffic[-1]

    assert whole.extra["kernel_groups"] == 1
    assert whole.extra["spilled_traffic_bytes"] == 0
    assert groups == sorted(groups)
    assert traffic == sorted(traffic)


def test_automatic_schedule_is_no_slower_than_the_default() -> None:
    default = ran(Schedule())

    found = ran(Schedule.auto(flops_per_cycle=default.allocated_flops_per_cycle))

    assert (found.cycles or 0) <= (default.cycles or 0)
    assert (found.allocated_flops_per_cycle or 0) <= (default.allocated_flops_per_cycle or 0)
    assert "channels sized" in found.extra["schedule"]


def test_budget_that_never_fits_is_refused_with_the_call() -> None:
    with pytest.raises(CapacityError, match=r"test_fusion\.py:\d+: .* needs buffers of [\d,]+ b"):
        ran(Schedule(order="output", tile_rows=8, tile_cols=8, tile_inner=8, on_chip_bytes=1))

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fabric import simulate
from operators.torch import Schedule, from_torch
from tests.torch.test_capture import Computing


class NamedLikeABroadcast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 3, bias=False)
        self.broadcast_a = nn.Linear(6, 6, bias=False)
        self.up, self.down = nn.Linear(3, 6), nn.Linear(3, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        return self.up(y) + self.down(y) + self.broadcast_a(x)


@pytest.mark.parametrize(
    ("module", "shapes", "schedule"),
    [
        (nn.GRU(8, 8), [(3, 2, 8)], Schedule(units=3)),
        (Computing(lambda x, w: (x @ w) @ (w @ w)), [(8, 12), (12, 12)], Schedule(units=4)),
        (Computing(torch.matmul), [(2, 3), (3, 107)], Schedule(tile_cols=5, units=2)),
        (NamedLikeABroadcast(), [(4, 6)], Schedule(tile_cols=3, units=2)),
    ],
)
def test_names_made_by_kernels_leave_those_of_calls(
    module: nn.Module, shapes: list[tuple[int, ...]], schedule: Schedule
) -> None:
    given: Any = tuple(map(torch.randn, shapes))
    program = from_torch(module.eval(), given, schedule=schedule)
    report = simulate(program, mode="functional")
    assert report.verified
    again = from_torch(module, given, schedule=schedule)
    assert [node.name for node in program.nodes] == [node.name for node in again.nodes]

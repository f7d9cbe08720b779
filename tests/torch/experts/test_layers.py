from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fabric import ConfigurationError, ProgramError, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.torch.experts.modules import filled, mixtral, qwen

SCHEDULES = {
    "default": Schedule(),
    "static": Schedule(ragged="static", tile_rows=4, tile_cols=8, regions=2, order="row"),
    "shared": Schedule(tile_cols=4, regions=(1,), order="output"),
}


@pytest.mark.parametrize(
    ("made", "schedule", "dtype"),
    [
        (qwen, "default", torch.float32),
        (mixtral, "static", torch.bfloat16),
        (qwen, "shared", torch.bfloat16),
    ],
)
def test_sparse_moe_layer_is_verified(made: object, schedule: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module = filled(made(32, 16, 4, 2), dtype)  # type: ignore[operator]
    x = torch.randn(2, 5, 32, dtype=dtype)

    program = from_torch(module, (x,), schedule=SCHEDULES[schedule])
    functional, timing = (simulate(program, mode=mode) for mode in ("functional", "timing"))

    assert functional.verified, functional.verification
    assert not functional.warnings
    assert timing.cycles == functional.cycles


def test_stated_routing_takes_the_cycles_of_the_data() -> None:
    torch.manual_seed(1)
    module = filled(qwen(32, 16, 4, 2), torch.float32)
    x = torch.randn(6, 32)
    choice = module.gate(x)[-1]
    with torch.device("meta"):
        empty = qwen(32, 16, 4, 2)

    known = simulate(
        from_torch(empty, (x[None].to("meta"),), routing=[choice.numpy()]), mode="timing"
    )
    chosen = simulate(from_torch(module, (x[None],)), mode="functional")

    assert known.cycles == chosen.cycles
    assert known.off_chip_traffic_bytes == chosen.off_chip_traffic_bytes


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            np.zeros((3, 2), int),
            r"^routing\[0\] names expert 0 twice for token 0: expected different experts$",
        ),
        (
            np.array([[0, 4]] * 3),
            r"^routing\[0\] names experts 0 to 4: expected 0 to 3$",
        ),
        (
            np.array([[0, 1]]),
            r"^routing\[0\] is an array \[1, 2\] of int64: expected integers \[3, 2\], "
            "the experts of each token$",
        ),
    ],
)
def test_wrong_routing_is_refused(choice: np.ndarray, message: str) -> None:
    with torch.device("meta"):
        module, x = qwen(32, 16, 4, 2), torch.empty(1, 3, 32)

    with pytest.raises(ProgramError, match=message):
        from_torch(module, (x,), routing=[choice])


def test_routing_may_be_iterators_and_not_masked() -> None:
    with torch.device("meta"):
        module, x = qwen(32, 16, 4, 2), torch.empty(1, 3, 32)
    choice = [[0, 1], [2, 1], [0, 3]]
    alike: list[Any] = [[np.array(choice)], iter([iter(choice)])]
    masked: Any = np.ma.array(choice, mask=np.eye(3, 2, dtype=bool))

    cycles = {
        simulate(from_torch(module, (x,), routing=given), mode="timing").cycles for given in alike
    }

    assert len(cycles) == 1
    with pytest.raises(ProgramError, match=r"routing: layers is a list of MaskedArrays: "):
        from_torch(module, (x,), routing=[masked])


def test_regions_that_do_not_divide_the_experts_are_refused() -> None:
    with torch.device("meta"):
        module, x = qwen(32, 16, 4, 2), torch.empty(1, 3, 32)

    with pytest.raises(
        ConfigurationError,
        match=r"^regions is 3 for ragged layer 0: expected a divisor of the number of groups, "
        "4$",
    ):
        from_torch(module, (x,), schedule=Schedule(regions=3))


class AddedToTokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = torch.nn.Linear(8, 4)
        self.weights = torch.nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares, choice = self.router(x).softmax(-1).topk(2)
        ordered, order = choice.flatten().sort()
        ends = torch.histc(ordered.float(), 4, 0, 3).cumsum(0).to(torch.int32)
        tokens = order // 2
        found = torch.nn.functional.grouped_mm(x[tokens], self.weights, offs=ends)
        found = found * shares.flatten()[order][:, None]
        return torch.zeros_like(x).index_add(0, tokens, found)


class Groups(torch.nn.Module):
    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(len(sizes), 8, 16))
        self.register_buffer("ends", torch.tensor(sizes).cumsum(0).to(torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.grouped_mm(x, self.weights, offs=self.ends)


@pytest.mark.parametrize("ragged", ["static", "dynamic"])
@pytest.mark.parametrize("module", [AddedToTokens(), Groups([3, 0, 2]), Groups([5])])
def test_grouped_products_are_verified(module: torch.nn.Module, ragged: str) -> None:
    schedule = Schedule(ragged=ragged, tile_rows=2, tile_cols=4)  # type: ignore[arg-type]
    x = torch.randn(5, 8).bfloat16()
    program = from_torch(module.eval().bfloat16(), (x,), schedule=schedule)

    report = simulate(program, mode="functional")

    assert report.verified, report.verification

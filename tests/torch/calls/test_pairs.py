# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fabric import ProgramError, simulate
from operators.torch import Schedule, from_torch


class Rotated(nn.Module):
    def __init__(self, heads_first: bool, from_kernel: bool) -> None:
        super().__init__()
        self.heads_first, self.from_kernel = heads_first, from_kernel

    def forward(self, x: Any) -> Any:
        angles = torch.arange(x.shape[1])[:, None] * 0.3 ** torch.arange(x.shape[3] // 2)
        turns = torch.polar(torch.ones_like(angles), angles)
        if self.from_kernel:
            x = x * 2
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        if self.heads_first:
            turned = pairs.transpose(1, 2) * turns
            return torch.view_as_real(turned.permute(0, 2, 1, 3)).flatten(3).to(x.dtype)
        return torch.view_as_real(pairs * turns[:, None]).flatten(3).type_as(x)


@pytest.mark.parametrize(
    ("heads_first", "from_kernel", "dtype"),
    [(False, True, torch.float32), (True, False, torch.bfloat16), (True, True, torch.float32)],
)
def test_rotary_embedding_is_verified(
    heads_first: bool, from_kernel: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 3, 8).to(dtype)
    schedule = Schedule(tile_rows=2, tile_cols=4)
    program = from_torch(Rotated(heads_first, from_kernel), (x,), schedule=schedule)

    report = simulate(program, mode="functional")

    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles


def test_complex_product_takes_six_flops() -> None:
    class Times(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y))

    x, y = torch.randn(3, 4, 2), torch.randn(3, 4, 2)

    report = simulate(from_torch(Times(), (x, y)), mode="functional")

    assert report.verified
    assert report.flops == 6 * 3 * 4


def test_permuted_complex_numbers_are_verified() -> None:
    class Turned(nn.Module):
        def forward(self, x: Any) -> Any:
            z = torch.view_as_complex(x)
            turned = z.permute(-1, 0, -2)
            return (
                torch.view_as_real(turned * z.permute(2, 0, 1)),
                torch.view_as_real(z.transpose(-1, 0)),
                torch.view_as_real(z.flatten(0, 1).unsqueeze(1).squeeze(1)),
            )

    report = simulate(from_torch(Turned(), (torch.randn(2, 3, 4, 2),)), mode="functional")

    assert report.verified


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda z: z[:, None] * z[None],
            "it repeats complex numbers along the last dimension: expected rows",
        ),
        (lambda z: z[:, None] * 1j, "it multiplies complex numbers with others: expected complex"),
        (lambda z: z + z, r"import add \(aten.add.Tensor\): it is given complex numbers"),
        (lambda z: z * 2.0, r"import mul \(aten.mul.Tensor\): it multiplies complex numbers with"),
        (lambda z: z, r"its result is stored: it is given complex numbers"),
    ],
)
def test_unsupported_complex_calls_are_refused(function: Any, message: str) -> None:
    class Calling(nn.Module):
        def forward(self, x: Any) -> Any:
            return function(torch.view_as_complex(x * 2))

    with pytest.raises(ProgramError, match=message):
        from_torch(Calling(), (torch.randn(3, 2),))

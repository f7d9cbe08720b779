from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fabric import Program, simulate
from operators import Map
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from tests.profiles import examples
from tests.torch.test_capture import Computing


class Norm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(variance + 1e-6)
        return self.weight * wide.to(x.dtype)


def maps(program: Program) -> int:
    return sum(isinstance(node.operator, Map) for node in program.nodes)


def verified(program: Program) -> None:
    report = simulate(program, mode="functional")
    assert report.verification is not None
    assert report.verified, "\n".join(report.verification.lines())
    assert simulate(program, mode="timing").cycles == report.cycles


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float32, 4), (torch.bfloat16, 16)])
def test_norm_is_one_unit(dtype: torch.dtype, rows: int) -> None:
    module = Norm(16).to(dtype)
    program = from_torch(
        module, (torch.randn(2, 6, 16).to(dtype),), schedule=Schedule(tile_rows=rows)
    )

    assert maps(program) == 1
    verified(program)


UNARY = [
    lambda x: x.sigmoid(),
    lambda x: x.transpose(-1, -2),
    lambda x: nn.functional.softmax(x, -1),
    lambda x: x - x.mean(-1, keepdim=True),
    lambda x: x.reshape(x.shape[1], x.shape[0], x.shape[2]),
    lambda x: torch.cat([x[..., 1:], x[..., :1]], -1),
    lambda x: torch.cat([x[:, :1] * 2, x], 1)[:, 1:],
    lambda x: x.amax(1, keepdim=True) - x,
    lambda x: nn.functional.silu(x) * 0.5,
]
BINARY = [torch.add, torch.mul, torch.maximum, lambda x, y: torch.where(x > y, x, y - x)]


@st.composite
def functions(draw: st.DrawFn) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    calls = [
        (
            draw(st.sampled_from(UNARY)),
            draw(st.sampled_from(BINARY)),
            draw(st.integers(0, 9)),
            draw(st.integers(0, 9)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        found = [x, y]
        for alone, both, first, second in calls:
            left = alone(found[first % len(found)])
            right = found[second % len(found)]
            found.append(both(left, right.reshape(left.shape)))
        return found[-1]

    return function


@examples(quick=5, deep=25)
@given(functions(), st.sampled_from([1, 2, 16]), st.integers(1, 3), st.sampled_from([2, 4]))
def test_random_chains_are_verified(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], rows: int, tall: int, wide: int
) -> None:
    shape = 2, tall, wide
    generator = torch.Generator().manual_seed(tall)
    given = (torch.randn(shape, generator=generator), torch.randn(shape, generator=generator))
    verified(from_torch(Computing(function), given, schedule=Schedule(tile_rows=rows)))

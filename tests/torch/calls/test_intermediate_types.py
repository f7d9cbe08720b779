from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
import torch

from fabric import ProgramError, simulate
from operators.torch import from_torch
from tests.torch.test_capture import Computing

functional = torch.nn.functional

STEPS: Final[dict[str, Callable[[Any], Any]]] = {
    "x // 0.1": lambda x: x // 0.1,
    "x // tensor": lambda x: x // x.flip(1),
    "3.3 // x": lambda x: 3.3 // x,
    "x % 0.1": lambda x: x % 0.1,
    "trunc by 0.1": lambda x: torch.div(x, 0.1, rounding_mode="trunc"),
    "trunc by tensor": lambda x: torch.div(x, x.flip(1), rounding_mode="trunc"),
    "round 1": lambda x: torch.round(x, decimals=1),
    "round -1": lambda x: torch.round(x, decimals=-1),
    "0.1 - x": lambda x: 0.1 - x,
    "x - one number": lambda x: x - torch.tensor(0.1),
    "x > 0.1": lambda x: torch.where(x > 0, x, 0.1) > 0.1,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_16_bit_numbers_are_exactly_those_of_pytorch(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.bfloat16, torch.float16):
        x = (torch.randn(16, 64, generator=generator) * 10).to(dtype)

        report = simulate(from_torch(Computing(STEPS[name]), (x,)), mode="functional")

        found = np.asarray(report.outputs["output"]).astype(np.float64)
        np.testing.assert_array_equal(found, STEPS[name](x).double().numpy())


NAN, INF = float("nan"), float("inf")
NUMBERS: Final = torch.tensor(
    [[-200.0, 0.0, 100.0, -50.0], [NAN, 2.0, 1.0, NAN], [-INF, -INF, 1, 2]]
)
LARGE: Final = torch.tensor([[1e3, -1e6, NAN, INF], [448.0, 463.0, 465.0, -INF]])

EDGES: Final[dict[str, tuple[Callable[[Any], Any], Any]]] = {
    "a span of more than 88": (lambda x: x.logcumsumexp(1), NUMBERS),
    "the sign of NaN": (torch.sign, NUMBERS),
    "a median with NaN": (lambda x: x.median(1), NUMBERS),
    "a median of all": (torch.median, NUMBERS),
    "buckets of NaN": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 2.0])), NUMBERS),
    "buckets from the right": (
        lambda x: torch.bucketize(x, torch.tensor([-1.0, 2.0]), right=True),
        NUMBERS,
    ),
    "sums of booleans": (lambda x: (x > 0) + (x > 1), NUMBERS),
    "pooling over padding only": (
        lambda x: functional.max_pool2d(x, 2, stride=1, padding=1, dilation=3, return_indices=True),
        torch.ones(1, 2, 2, 4),
    ),
    "float8_e4m3fn beyond 448": (lambda x: x.to(torch.float8_e4m3fn).float(), LARGE),
    "float8_e5m2": (lambda x: x.to(torch.float8_e5m2).float(), LARGE),
    "a negative bit": (lambda x: x * 2, torch.complex(LARGE, LARGE).conj().imag),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_module_at_the_edge_gives_what_pytorch_gives(name: str) -> None:
    function, x = EDGES[name]

    report = simulate(from_torch(Computing(function), (x,)), mode="functional")

    assert report.verified
    wanted = torch.utils._pytree.tree_leaves(function(x))
    for found, tensor in zip(report.outputs.values(), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(found), tensor.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "x", "message"),
    [
        (lambda x: torch.exp(1j * x).real, NUMBERS, r"mul.*: it is given 1j: expected a real"),
        (lambda x: x.real, torch.complex(LARGE, LARGE).conj(), "an argument has complex numbers"),
        (lambda x: x * 2, NUMBERS[:0], r"it gives a tensor \[0, 4\]: expected one with elements"),
        (lambda x: x[:0].amax(1), NUMBERS, "expected one with elements"),
    ],
)
def test_complex_and_empty_tensors_are_refused_by_name(
    function: Callable[[Any], Any], x: Any, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        from_torch(Computing(function), (x,))

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from fabric import simulate
from operators.torch import from_torch
from operators.torch.from_torch import Reference
from tests.torch.test_capture import Computing

BFLOAT16 = torch.bfloat16


def drawn(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) + 8).to(BFLOAT16)


def normalised(x: Any, axes: tuple[int, ...]) -> Any:
    numbers = x.double().numpy()
    mean = numbers.mean(axis=axes, keepdims=True)
    return (numbers - mean) / np.sqrt(numbers.var(axis=axes, keepdims=True) + 1e-5)


def pooled(x: Any) -> Any:
    numbers = x.double().numpy()
    for axis in (-1, -2, -3):
        half = -(-numbers.shape[axis] // 2)
        parts = [
            numbers.take(range(half), axis=axis),
            numbers.take(range(numbers.shape[axis] - half, numbers.shape[axis]), axis=axis),
        ]
        numbers = np.stack([each.mean(axis=axis) for each in parts], axis=axis)
    return numbers


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[Any]]] = {
    "instance_norm": (
        functional.instance_norm,
        lambda x: normalised(x, (2, 3)),
        [drawn(2, 3, 4, 5, seed=seed) for seed in range(3)],
    ),
    "adaptive_avg_pool3d": (
        lambda x: functional.adaptive_avg_pool3d(x, 2),
        pooled,
        [drawn(1, 2, 5, 6, 7, seed=seed) for seed in range(3)],
    ),
    "layer_norm of equal numbers": (
        lambda x: functional.layer_norm(x, x.shape[1:]),
        lambda x: normalised(x, (1,)),
        [torch.full((3, cols), 1.3).to(BFLOAT16) for cols in (16, 24)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_16_bit_reference_rounds_once(name: str) -> None:
    function, defined, inputs = CASES[name]
    for x in inputs:
        with Reference():
            expected = function(x).double().numpy()

        wanted = torch.from_numpy(defined(x)).to(BFLOAT16).double().numpy()
        np.testing.assert_allclose(expected, wanted, rtol=2**-7, atol=1e-6)
        report = simulate(from_torch(Computing(function), (x,)), mode="functional")
        assert report.verified, report.verification


def test_reference_names_the_first_of_equal_numbers() -> None:
    x = torch.randint(0, 3, (4, 9), generator=torch.Generator().manual_seed(0)).float()
    with Reference():
        values, places = x.kthvalue(3, 1)

    np.testing.assert_array_equal(places, np.argsort(x.numpy(), axis=1, kind="stable")[:, 2])
    np.testing.assert_array_equal(values, np.sort(x.numpy(), axis=1)[:, 2])
    with Reference():
        kept = x.kthvalue(3, 1, keepdim=True)
        last = x[0].kthvalue(9)
        single = torch.tensor(5.0).kthvalue(1)
    assert [each.shape for each in kept] == [(4, 1)] * 2
    assert torch.equal(kept[1][:, 0], places)
    assert [each.item() for each in last] == [
        x[0].max(),
        np.argsort(x[0].numpy(), kind="stable")[8],
    ]
    assert [each.item() for each in single] == [5, 0]
    program = from_torch(Computing(lambda x: tuple(x.kthvalue(3, 1))), (x,))
    assert simulate(program, mode="functional").verified

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fabric import ProgramError, simulate
from operators.torch import from_torch
from tests.torch.test_capture import Computing

X = torch.randn(2, 4, 3, 6, generator=torch.Generator().manual_seed(0))
NAN, INF = float("nan"), float("inf")
EDGES = torch.tensor([[1, 3, 3, NAN, 5, NAN], [0, -0.0, 0, -1, INF, INF], [-INF, -1, -1, -2, 0, 0]])


CASES: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "cummax": (lambda x: torch.cummax(x, 1), EDGES),
    "cummin": (lambda x: torch.cummin(x, 0).indices, EDGES),
    "layer norm": (lambda x: torch.native_layer_norm(x, (3, 6), None, None, 1e-3), X),
    "group norm": (lambda x: torch.native_group_norm(x, None, None, 2, 4, 18, 2, 1e-3), X),
    "instance norm": (lambda x: torch.native_batch_norm(x, *[None] * 4, True, 0.1, 1e-3), X),
}


@pytest.mark.parametrize("name", CASES)
def test_results_of_a_call_equal_pytorch(name: str) -> None:
    function, x = CASES[name]
    program = from_torch(Computing(function).eval(), (x,))
    report = simulate(program, mode="functional")
    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles


def test_a_result_that_is_read_and_not_computed_is_refused() -> None:
    def attended(x: torch.Tensor) -> Any:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)

    with pytest.raises(ProgramError, match=r"its result 1 is read, .*: expected readers of .* 0$"):
        from_torch(Computing(attended).eval(), (X,))

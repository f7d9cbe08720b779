from __future__ import annotations

from typing import Any

import pytest
import torch

from fabric import ProgramError
from operators.torch import from_torch
from tests.torch.test_capture import Computing

X = torch.randn(2, 4, 3, 6, generator=torch.Generator().manual_seed(0))
NAN, INF = float("nan"), float("inf")


def test_a_result_that_is_read_and_not_computed_is_refused() -> None:
    def attended(x: torch.Tensor) -> Any:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)

    with pytest.raises(ProgramError, match=r"its result 1 is read, .*: expected readers of .* 0$"):
        from_torch(Computing(attended).eval(), (X,))

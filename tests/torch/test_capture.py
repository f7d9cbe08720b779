"""What from_torch is given: modules it can trace, and what it says of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from fabric import ProgramError, simulate
from operators.torch import from_torch

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Computing(nn.Module):
    """A module that computes what a function does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Compute ``function``."""
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """Return what the function does."""
        return self.function(*args)


@pytest.mark.parametrize(
    ("given", "args", "said"),
    [
        (lambda x: x, (X,), "is given a function: expected a torch.nn.Module"),
        (Computing(torch.relu), X, "args is a Tensor: expected a tuple, such as (x,)"),
        (Computing(torch.relu), [X], "args is a list: expected a tuple, such as (x,)"),
        (nn.Linear(9, 8), (X,), "cannot trace Linear for these arguments: RuntimeError: a and b"),
        (
            Computing(lambda x: x * 2 if x.sum() > 0 else x),
            (X,),
            "cannot trace Computing for these arguments: GuardOnDataDependentSymNode",
        ),
    ],
)
def test_refusals(given: Any, args: Any, said: str) -> None:
    """In one sentence, at the line that asks for it."""
    with pytest.raises(ProgramError) as raised:
        from_torch(given, args)
    assert said in raised.value.message
    assert raised.value.file == __file__


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype: torch.dtype, affine: bool) -> None:
    """A factor and a term for each channel, which are known before the run."""
    torch.manual_seed(1)
    norm = nn.BatchNorm2d(3, affine=affine).eval()
    norm.running_mean += torch.randn(3)
    norm.running_var += torch.rand(3)
    if affine:
        norm.weight.data += torch.randn(3)
        norm.bias.data += torch.randn(3)
    program = from_torch(norm.to(dtype), (torch.randn(2, 3, 4, 5).to(dtype),))
    assert simulate(program, mode="functional").verified


def test_what_is_no_number_is_expected() -> None:
    """NaN where PyTorch computes NaN is right, and a number there is not."""
    program = from_torch(Computing(torch.log), (X,))
    assert X.lt(0).any()
    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: (x + 1, x + 1),
        lambda x: torch.ones(3),  # noqa: ARG005 - an input that nobody reads
        lambda x: x.sum(),
        lambda x: {"a": x + 1, "b": [x * 2, None]},
    ],
)
def test_outputs_of_all_kinds(function: Callable[[torch.Tensor], Any]) -> None:
    """The input itself, one tensor twice, constants, single numbers, and trees of tensors."""
    assert simulate(from_torch(Computing(function), (X,)), mode="functional").verified

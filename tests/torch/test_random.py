from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fabric import ProgramError, simulate
from operators.torch import from_torch
from tests.torch.test_capture import Computing

DRAWN: dict[str, Callable[[Any], Any]] = {
    "randn": lambda x: x + torch.randn(4, 8),
    "randperm": lambda x: x[torch.randperm(4)],
    "randn_like": lambda x: x + torch.randn_like(x),
    "bernoulli of data": torch.bernoulli,
    "multinomial of data": lambda x: x + torch.multinomial(x, 8),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5, training=True),
    "rrelu": lambda x: torch.nn.functional.rrelu(x, training=True),
    "attention with dropout": lambda x: torch.nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], dropout_p=0.5
    ),
    "in place": lambda x: x + torch.empty(4, 8).uniform_(),
}
FIXED: dict[str, Callable[[Any], Any]] = {
    "dropout of nothing": lambda x: torch.nn.functional.dropout(x, 0.5, training=False),
    "dropout of none": lambda x: torch.nn.functional.dropout(x, 0.0, training=True),
    "rrelu": lambda x: torch.nn.functional.rrelu(x, training=False),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None]
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_calls_are_refused(name: str) -> None:
    with pytest.raises(ProgramError, match="it draws random numbers: expected a module in eval"):
        from_torch(Computing(DRAWN[name]).train(), (torch.ones(4, 8),))


@pytest.mark.parametrize("name", FIXED)
def test_random_calls_in_evaluation_are_imported(name: str) -> None:
    from_torch(Computing(FIXED[name]).eval(), (torch.ones(4, 8),))


def test_float64_argument_is_refused() -> None:
    x = torch.full((4, 8), 1e300, dtype=torch.float64)
    with pytest.raises(ProgramError) as raised:
        from_torch(Computing(lambda x: x * 2), (x,))
    assert raised.value.message == (
        "from_torch is given args_0: its element type is float64: expected one of float32, "
        "float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, int16, int32, int64, uint8, bool"
    )
    assert raised.value.file == __file__


class Scaled(torch.nn.Module):
    def __init__(self, function: Callable[[Any, Any], Any], number: float, kind: str) -> None:
        super().__init__()
        self.function = function
        held = torch.tensor(number, dtype=torch.float64)
        if kind == "parameter":
            self.number = torch.nn.Parameter(held, requires_grad=False)
        else:
            self.register_buffer("number", held)

    def forward(self, x: Any) -> Any:
        return self.function(x, self.number)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("mul", "buffer"), ("sub", "parameter"), ("eq", "buffer"), ("where", "buffer")],
)
def test_single_float64_number_equals_pytorch(name: str, kind: str) -> None:
    function: Any = getattr(torch, name)
    if name == "where":
        function = lambda x, number: torch.where(x > 1, x, number)  # noqa: E731
    x = torch.tensor([[0.1, 1 / 3, 2.0, -5.5], [16777216.0, 1.0, 0.25, 3e30]])
    for number in (0.1, 1e300, 16777217.0):
        module = Scaled(function, number, kind)
        assert np.array_equal(_stored(module, x), module(x), equal_nan=True)


@pytest.mark.parametrize(("name", "dtype"), [("eq", torch.bfloat16), ("lt", torch.float16)])
def test_comparison_with_a_number_rounds_like_pytorch(name: str, dtype: Any) -> None:
    x = torch.tensor([[0.1, 1 / 3, 2.0, 0.0999, 0.1001]]).to(dtype)
    compare = getattr(torch, name)
    for number in (0.1, 1 / 3, torch.tensor(0.1)):
        module = Computing(lambda x, number=number: compare(x, number))
        assert np.array_equal(_stored(module, x), module(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, number: x[0, 0] * number,
        lambda x, number: (x, number),
        lambda x, number: (x > 0).int() * number,
    ],
)
def test_float64_results_are_refused(function: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(ProgramError, match="its element type is float64"):
        from_torch(Scaled(function, 0.1, "buffer"), (torch.ones(4, 8),))


def _stored(module: Any, x: Any) -> np.ndarray:
    return np.asarray(simulate(from_torch(module, (x,)), mode="functional").outputs["output"])

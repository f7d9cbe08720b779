from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from fabric import simulate
from operators.torch import from_torch
from tests.torch.test_capture import Computing


def random(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


_SURE = torch.cat([torch.full((8, 1), 14.0), random(8, 9)], 1)

_ENCODER = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1
)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "centred rows": (lambda x: x - x.mean(1, keepdim=True), (random(16, 128) + 100,)),
    "layer norm": (lambda x: functional.layer_norm(x, (128,)), (random(16, 128) + 100,)),
    "sure logarithm": (lambda x: functional.log_softmax(x, 1), (_SURE,)),
    "tail of gelu": (functional.gelu, (torch.linspace(-5, -3, 128).reshape(2, 64),)),
    "orthogonal rows": (lambda x: x @ x.T - torch.eye(16), (torch.linalg.qr(random(16, 16))[0],)),
    "masked encoder": (
        lambda x, mask: _ENCODER(x, src_key_padding_mask=mask),
        (random(2, 4, 8), torch.tensor([[False] * 4, [False, False, True, True]])),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cancellation_is_verified(name: str) -> None:
    function, arguments = CASES[name]
    module = Computing(function).eval()
    _ENCODER.eval()
    program = from_torch(module, arguments)
    report = simulate(program, mode="functional")
    assert report.verified, report.verification
    output: Any = report.outputs["output"]
    wrong = output + 0.01
    expectation = program.expected["output"]
    program.expected["output"] = expectation._replace(compute=lambda: wrong, finer=lambda: None)
    assert simulate(program, mode="functional").verified is False


@pytest.mark.parametrize("function", [lambda x: x.sort(1).values, lambda x: x.topk(9, 1).values])
def test_sorted_numbers_with_ties_hide_no_wrong_number(function: Callable[..., Any]) -> None:
    program = from_torch(
        Computing(lambda x: function(x - x.mean(1, keepdim=True))).eval(),
        (random(8, 32).bfloat16(),),
    )
    report = simulate(program, mode="functional")
    assert report.verified, report.verification
    output: Any = report.outputs["output"]
    wrong = output.astype("float64")
    wrong[3, 5] += 0.5
    expectation = program.expected["output"]
    program.expected["output"] = expectation._replace(compute=lambda: wrong, finer=lambda: None)
    assert simulate(program, mode="functional").verified is False

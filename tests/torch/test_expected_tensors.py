from __future__ import annotations

from typing import Final

import numpy as np
import pytest
import torch

from fabric import Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore

X: Final = torch.arange(16.0).reshape(4, 4)

TENSORS: Final = {
    "requires a gradient": X.clone().requires_grad_(),
    "bfloat16": X.bfloat16(),
    "float8": X.to(torch.float8_e4m3fn),
    "negative bit": torch.complex(X, -X).conj().imag,
}


@pytest.mark.parametrize("name", TENSORS)
def test_an_expected_tensor_is_compared_as_its_numbers(name: str) -> None:
    for right in (True, False):
        with Program("copied", mode="functional") as program:
            tiles = LinearOffChipLoad(X.numpy() + np.float32(not right), tile=(2, 4))()
            LinearOffChipStore("y")(tiles)
        program.expect(y=lambda: TENSORS[name])

        assert simulate(program).verified is right

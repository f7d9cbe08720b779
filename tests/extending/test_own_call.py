"""A call that nobody imports, imported by its user: one registered function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from fabric import Dim, simulate  # noqa: E402
from operators.functions.base import Array  # noqa: E402
from operators.functions.steps import Shape, Step  # noqa: E402
from operators.kernels.tensors import View  # noqa: E402
from operators.torch import Call, Importing, from_torch, imports, unsupported_calls  # noqa: E402


class OfBessel(torch.nn.Module):  # type: ignore[name-defined,misc]
    """A call that is not among those that are imported."""

    def forward(self, x: Any) -> Any:
        """Call it, and another one behind it."""
        return torch.special.i0(x) * 2


class Bessel(Step):
    """The modified Bessel function of order 0, by numpy."""

    def shape(self, *shapes: Shape) -> Shape:
        """Return that of x."""
        return shapes[0]

    def flops(self, *shapes: Shape) -> Dim:
        """Return twenty for each number."""
        ((rows, cols),) = shapes
        return 20 * rows * cols

    def compute(self, *values: Array) -> Array:
        """Return the numbers."""
        return np.asarray(np.i0(values[0]))


def test_a_users_own_call() -> None:
    """It is named while nobody imports it; then it is a step like any other."""
    given = (torch.randn(4, 8, generator=torch.Generator().manual_seed(0)),)
    (missing,) = unsupported_calls(OfBessel(), given)
    assert missing.call == "aten.i0.default"

    @imports("aten.i0.default")
    def bessel(importing: Importing, call: Call) -> View:
        return importing.chain(call, call.args, (Bessel((0,), call.result.dtype),))

    report = simulate(from_torch(OfBessel(), given), mode="functional")

    assert report.verified
    assert report.flops == 4 * 8 * (20 + 1)

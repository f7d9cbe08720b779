"""A call of PyTorch without an importer, imported by one registered function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from fabric import Dim, dtype_named, simulate  # noqa: E402
from operators.functions.arithmetic import Array  # noqa: E402
from operators.functions.steps import Shape, Step  # noqa: E402
from operators.kernels.tensors import View  # noqa: E402
from operators.torch import Call, Importing, from_torch, imports, unsupported_calls  # noqa: E402


class OfBessel(torch.nn.Module):  # type: ignore[name-defined]
    def forward(self, x: Any) -> Any:
        return torch.special.i0(x) * 2


class OfAnother(torch.nn.Module):  # type: ignore[name-defined]
    def forward(self, x: Any) -> Any:
        return torch.special.i1(x)


class Bessel(Step):
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def flops(self, *shapes: Shape) -> Dim:
        ((rows, cols),) = shapes
        return 20 * rows * cols

    def compute(self, *values: Array) -> Array:
        return np.asarray(np.i0(values[0]))


def test_call_of_a_users_importer_is_verified() -> None:
    given = (torch.randn(4, 8, generator=torch.Generator().manual_seed(0)),)
    (missing,) = unsupported_calls(OfBessel(), given)
    assert missing.call == "aten.i0.default"

    @imports("aten.i0.default")
    def bessel(importing: Importing, call: Call) -> View:
        return importing.chain(call, call.args, (Bessel((0,), call.result.dtype),))

    report = simulate(from_torch(OfBessel(), given), mode="functional")

    assert report.verified
    assert report.flops == 4 * 8 * (20 + 1)


@pytest.mark.parametrize(("columns", "dtype"), [(4, "float32"), (8, "float16")])
def test_importer_with_another_result_than_pytorchs_is_refused(columns: int, dtype: str) -> None:
    given = (torch.ones(4, 8),)

    @imports("aten.special_i1.default")
    def other(importing: Importing, call: Call) -> View:
        (x,) = call.args
        part = importing.part(call, x, 1, 0, columns)
        return importing.chain(call, (part,), (Bessel((0,), dtype_named(dtype)),))

    (missing,) = unsupported_calls(OfAnother(), given)

    expected = f"its importer gives a tensor [4, {columns}] of {dtype}: expected [4, 8] of float32"
    assert ("aten.special_i1.default", expected) == (missing.call, missing.needed)

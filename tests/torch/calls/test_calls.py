from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fabric.graph.values.fit import unit_of
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from operators.torch.call import UnsupportedError
from operators.torch.capture import array_of
from operators.torch.registry import importer_of, supported
from tests.profiles import examples
from tests.torch.calls.calling import DTYPES, SCHEDULES, SIZES, Single, check, maybe_repeated
from tests.torch.calls.evaluating import evaluated

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
Draw: TypeAlias = Callable[[st.DrawFn, Any], Arguments]

POSITIVE: Final = {"lgamma", "log", "log10", "log1p", "log2", "rsqrt", "sqrt"}


def _other(draw: st.DrawFn, x: Any) -> Any:
    sizes = [draw(st.sampled_from([1, size])) for size in x.shape]
    return _numbers(draw, sizes[draw(st.integers(0, len(sizes))) :], x.dtype)


def _numbers(draw: st.DrawFn, shape: Any, dtype: Any) -> Any:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    return torch.randn(tuple(shape), generator=generator).to(dtype)


def _alone(_: st.DrawFn, x: Any) -> Arguments:
    return (x,), {}


def _with(*others: Any, **names: Any) -> Draw:
    return lambda _, x: ((x, *others), names)


def _pair(draw: st.DrawFn, x: Any) -> Arguments:
    return (x, _other(draw, x)), {}


def _mask(draw: st.DrawFn, x: Any) -> Any:
    return _other(draw, x) > 0


def _dim(draw: st.DrawFn, x: Any) -> int:
    return draw(st.integers(-x.ndim, x.ndim - 1))


def _along(*others: Any) -> Draw:
    return lambda draw, x: ((x, _dim(draw, x), *others), {})


def _dims(draw: st.DrawFn, x: Any) -> Arguments:
    dims = draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, max_size=x.ndim, unique=True))
    return (x, dims, draw(st.booleans())), {}


def _slice(draw: st.DrawFn, x: Any) -> Arguments:
    dim = _dim(draw, x)
    first = draw(st.integers(0, x.shape[dim] - 1))
    last = draw(st.integers(first + 1, x.shape[dim]))
    ends = draw(st.sampled_from([(first, last), (first - x.shape[dim], last), (first, 2**63 - 1)]))
    return (x, dim, *ends, draw(st.integers(1, 3))), {}


def _parts(draw: st.DrawFn, x: Any) -> tuple[int, list[int]]:
    dim = _dim(draw, x)
    cut = draw(st.integers(1, x.shape[dim]))
    return dim, [size for size in (cut, x.shape[dim] - cut) if size]


def _reshaped(draw: st.DrawFn, x: Any) -> list[int]:
    sizes = []
    left = x.numel()
    for _ in range(draw(st.integers(0, 3))):
        sizes.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= sizes[-1]
    return draw(st.permutations([*sizes, left]))


def _cat(draw: st.DrawFn, x: Any) -> Arguments:
    dim = _dim(draw, x)
    parts = [x]
    for _ in range(draw(st.integers(0, 2))):
        shape = list(x.shape)
        shape[dim] = draw(SIZES)
        parts.append(_numbers(draw, shape, x.dtype))
    return (draw(st.permutations(parts)), dim), {}


def _norm(*, bias: bool, eps: float | None) -> Draw:
    def arguments(draw: st.DrawFn, x: Any) -> Arguments:
        # A single number less its mean would be nothing but rounding errors.
        x = torch.stack([x, -x - 0.5], dim=-1)
        shape = list(x.shape[draw(st.integers(0, x.ndim - 1)) :])
        others = [_numbers(draw, shape, x.dtype) for _ in range(1 + bias)]
        if draw(st.booleans()):
            others = [None] * len(others)
        return (x, shape, *others, eps), {}

    return arguments


def _expand(draw: st.DrawFn, x: Any) -> Arguments:
    sizes = [draw(SIZES) if size == 1 else size for size in x.shape]
    return (x, [*draw(st.lists(SIZES, max_size=1)), *sizes]), {}


def _skip(_: st.DrawFn, x: Any) -> Arguments:
    raise NotImplementedError


def _masks(draw: st.DrawFn, x: Any) -> Arguments:
    return (x > 0, _mask(draw, x)), {}


def _mask_alone(_: st.DrawFn, x: Any) -> Arguments:
    return (x > 0,), {}


def _reduced(draw: st.DrawFn, x: Any) -> Arguments:
    dims = draw(st.lists(st.integers(0, x.ndim - 1), max_size=x.ndim, unique=True))
    return (x, dims, draw(st.booleans())), {}


def _some(draw: st.DrawFn, x: Any) -> Arguments:
    return (x > 0, _dim(draw, x), draw(st.booleans())), {}


def _corrected(draw: st.DrawFn, x: Any) -> Arguments:
    (_, dims, keepdim), _ = _dims(draw, x)
    return (x, dims), {"correction": draw(st.sampled_from([0, 1])), "keepdim": keepdim}


def _unbiased(draw: st.DrawFn, x: Any) -> Arguments:
    (_, dims, keepdim), _ = _dims(draw, x)
    return (x, dims, draw(st.booleans()), keepdim), {}


def _as_shape(draw: st.DrawFn, x: Any) -> Arguments:
    return (x, _reshaped(draw, x)), {}


def _exchanged(draw: st.DrawFn, x: Any) -> Arguments:
    return (x, _dim(draw, x), _dim(draw, x)), {}


def _padded(draw: st.DrawFn, x: Any) -> Arguments:
    dims = draw(st.integers(1, x.ndim))
    least = [-1 if size > 2 else 0 for size in reversed(x.shape)]
    added = [draw(st.integers(least[each // 2], 3)) for each in range(2 * dims)]
    return (x, added, draw(st.sampled_from([0.0, 1.5]))), {}


def _sized(draw: st.DrawFn, x: Any) -> Arguments:
    dim, sizes = _parts(draw, x)
    return (x, sizes, dim), {}


def _chunked(draw: st.DrawFn, x: Any) -> Arguments:
    dim = _dim(draw, x)
    return (x, draw(st.integers(1, x.shape[dim])), dim), {}


def _scaled(draw: st.DrawFn, x: Any) -> Arguments:
    return (x, _other(draw, x)), draw(st.sampled_from([{}, {"alpha": 0.5}]))


def _selected(draw: st.DrawFn, x: Any) -> Arguments:
    dim = _dim(draw, x)
    return (x, dim, draw(st.integers(-x.shape[dim], x.shape[dim] - 1))), {}


def _bounded(_: st.DrawFn, x: Any) -> Arguments:
    return (torch.tanh(x) * 0.9,), {}


def _apart(draw: st.DrawFn, x: Any) -> Arguments:
    return (x, _other(draw, x).abs() + 0.5), {}


ROUNDING: Final = st.sampled_from(["floor", "trunc"])

BOUNDS: Final = st.sampled_from(
    [lambda x: (x, -0.5, 0.5), lambda x: (x, None, 0.5), lambda x: (x, -0.5)]
)

CASES: Final[dict[str, Draw]] = {
    **{
        f"aten.{name}.default": _alone
        for name in (
            *("abs", "alias", "clone", "cos", "detach", "erf", "exp", "expm1"),
            *("floor", "hardsigmoid", "hardswish", "log", "log1p", "log2", "neg"),
            *("reciprocal", "relu", "relu6", "round", "rsqrt", "sigmoid", "sign", "silu", "sin"),
            *("special_erf", "special_expit", "sqrt", "square", "squeeze", "tanh"),
            *("std", "sum", "max", "mean", "min", "var", "elu", "leaky_relu", "softplus"),
            *("hardtanh", "prod"),
        )
    },
    **{f"aten.{name}.Tensor": _pair for name in ("add", "div", "mul", "sub", "rsub")},
    **{f"aten.{name}.Scalar": _with(0.7) for name in ("add", "div", "mul", "sub", "rsub")},
    **{
        f"aten.{name}.Tensor": lambda _, x: ((x, x), {})
        for name in ("eq", "ge", "gt", "le", "lt", "ne")
    },
    **{f"aten.{name}.Scalar": _with(0.25) for name in ("eq", "ge", "gt", "le", "lt", "ne")},
    **{f"aten.{name}.default": _pair for name in ("maximum", "minimum")},
    **{f"aten.{name}.Tensor": _pair for name in ("clamp_min", "clamp_max", "true_divide")},
    **{f"aten.{name}.default": _with(0.3) for name in ("clamp_min", "clamp_max")},
    **{f"aten.{name}.default": _masks for name in ("logical_and", "logical_or")},
    **{f"aten.{name}.Tensor": _masks for name in ("bitwise_and", "bitwise_or")},
    **{f"aten.{name}.default": _mask_alone for name in ("logical_not", "bitwise_not")},
    **{f"aten.{name}.default": _reduced for name in ("amax", "amin")},
    **{f"aten.{name}": _reduced for name in ("mean.dim", "sum.dim_IntList")},
    **{f"aten.{name}.dim": _some for name in ("all", "any")},
    **{f"aten.{name}.default": _mask_alone for name in ("all", "any")},
    **{f"aten.{name}.correction": _corrected for name in ("std", "var")},
    **{f"aten.{name}.dim": _unbiased for name in ("std", "var")},
    **{f"aten.{name}.default": _as_shape for name in ("_unsafe_view", "view")},
    **{f"aten.{name}": _along(torch.float32) for name in ("softmax.int", "log_softmax.int")},
    **{f"aten.{name}.default": _along(False) for name in ("_softmax", "_log_softmax")},
    "aten.transpose.int": _exchanged,
    "aten.type_as.default": lambda _, x: ((x, x.clone()), {}),
    **{f"aten.{name}": _cat for name in ("cat.default", "concat.default")},
    "aten.split_with_sizes.default": _sized,
    **{f"aten.{name}": _chunked for name in ("split.Tensor", "unsafe_split.Tensor")},
    "aten.expand.default": _expand,
    **{
        f"aten.{name}.default": _alone
        for name in (
            *("asinh", "atan", "ceil", "cosh", "erfc", "exp2", "isinf", "isnan", "lgamma", "log10"),
            *("sinh", "tan", "trunc"),
        )
    },
    **{f"aten.{name}.default": _bounded for name in ("acos", "asin", "atanh")},
    **{f"aten.{name}.default": _pair for name in ("atan2", "hypot")},
    "aten.acosh.default": lambda _, x: ((x.abs() + 1.1,), {}),
    "aten.bitwise_xor.Tensor": _masks,
    "aten.copysign.Tensor": _pair,
    "aten.div.Scalar_mode": lambda draw, x: ((x, 0.7), {"rounding_mode": draw(ROUNDING)}),
    "aten.div.Tensor_mode": lambda draw, x: (
        (x, _other(draw, x).abs() + 0.5),
        {"rounding_mode": draw(ROUNDING)},
    ),
    "aten.floor_divide.default": _apart,
    "aten.fmod.Scalar": _with(0.75),
    "aten.fmod.Tensor": _apart,
    "aten.logical_xor.default": _masks,
    "aten.remainder.Scalar": _with(0.75),
    "aten.remainder.Tensor": _apart,
    "aten._reshape_alias.default": _skip,
    "aten._to_copy.default": lambda draw, x: ((x,), {"dtype": draw(DTYPES)}),
    "aten.add.Tensor": _scaled,
    "aten.clamp.Tensor": lambda draw, x: ((x, _other(draw, x), _other(draw, x)), {}),
    "aten.clamp.default": lambda draw, x: (draw(BOUNDS)(x), {}),
    "aten.clip.default": lambda draw, x: (draw(BOUNDS)(x), {}),
    "aten.constant_pad_nd.default": _padded,
    "aten.gelu.default": lambda draw, x: (
        (x,),
        {"approximate": draw(st.sampled_from(["none", "tanh"]))},
    ),
    "aten.layer_norm.default": _norm(bias=True, eps=1e-5),
    "aten.masked_fill.Scalar": lambda draw, x: ((x, _mask(draw, x), -1e4), {}),
    "aten.masked_fill.Tensor": lambda draw, x: (
        (x, _mask(draw, x), torch.tensor(3.0, dtype=x.dtype)),
        {},
    ),
    "aten.native_layer_norm.default": _norm(bias=True, eps=1e-6),
    "aten.permute.default": lambda draw, x: ((x, draw(st.permutations(range(-x.ndim, 0)))), {}),
    "aten.pow.Scalar": lambda _, x: ((1.5, x), {}),
    "aten.pow.Tensor_Scalar": lambda draw, x: (
        draw(st.sampled_from([(x, 2), (x, 3), (x.abs(), 0.5), (x.abs() + 0.1, -0.5), (x, 1)])),
        {},
    ),
    "aten.pow.Tensor_Tensor": lambda draw, x: ((x.abs() + 0.1, _other(draw, x)), {}),
    "aten.prod.dim_int": lambda draw, x: ((x, _dim(draw, x), draw(st.booleans())), {}),
    "aten.rms_norm.default": _norm(bias=False, eps=1e-6),
    "aten.select.int": _selected,
    "aten.slice.Tensor": _slice,
    "aten.squeeze.dim": _along(),
    "aten.squeeze.dims": lambda draw, x: ((x, [_dim(draw, x)]), {}),
    "aten.stack.default": lambda draw, x: (
        ([x] * draw(st.integers(1, 3)), draw(st.integers(-x.ndim - 1, x.ndim))),
        {},
    ),
    "aten.sub.Tensor": _scaled,
    "aten.t.default": lambda _, x: ((x.reshape(x.shape[0], -1),), {}),
    "aten.unbind.int": _along(),
    "aten.unsqueeze.default": lambda draw, x: ((x, draw(st.integers(-x.ndim - 1, x.ndim))), {}),
    "aten.where.Scalar": lambda _, x: ((x > 0, 1.0, 2.0), {}),
    "aten.where.ScalarOther": lambda draw, x: ((_mask(draw, x), x, 1.0), {}),
    "aten.where.ScalarSelf": lambda draw, x: ((_mask(draw, x), 1.0, x), {}),
    "aten.where.self": lambda draw, x: ((_mask(draw, x), x, _other(draw, x)), {}),
}

TARGETS: Final = sorted(target for target, draw in CASES.items() if draw is not _skip)


@st.composite
def calls(draw: st.DrawFn, target: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    name = target.split(".")[1]
    shape = draw(st.lists(SIZES, min_size=1, max_size=4))
    x = _numbers(draw, shape, draw(DTYPES))
    if name in POSITIVE:
        x = x.abs() + 0.1
    if name not in {"std", "var"}:  # the deviation of equal numbers is only rounding errors
        x = maybe_repeated(draw, x)
    return target, *CASES[target](draw, x)


@pytest.mark.parametrize("target", TARGETS)
@examples(quick=7, deep=150)
@given(st.data())
def test_kernel_numbers_equal_pytorch(target: str, data: st.DataObject) -> None:
    _, args, kwargs = data.draw(calls(target))
    single = Single(data.draw(SCHEDULES), data.draw)
    views, expected = single.views(target, args, kwargs)
    for view, tensor in zip(views, expected, strict=True):
        if view is None:
            continue
        found, wanted = evaluated(single.importing.model, view), array_of(tensor)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        # PyTorch also rounds some single numbers, which is visible where numbers cancel out.
        unit = unit_of(wanted.dtype)
        units = (32, 256) if unit < 2**-11 else (4, 24)
        numbers = np.abs(wanted.astype(np.float64))
        numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
        typical = float(np.median(numbers)) if numbers.size else 0.0
        np.testing.assert_allclose(
            found.astype(np.float64),
            wanted.astype(np.float64),
            rtol=units[0] * unit,
            atol=units[1] * unit * typical + 1e-40,
        )


@examples(quick=12, deep=100)
@given(st.data())
def test_program_of_a_call_equals_pytorch(data: st.DataObject) -> None:
    target, args, kwargs = data.draw(st.sampled_from(TARGETS).flatmap(calls))
    check(Single(data.draw(SCHEDULES), data.draw).program(target, args, kwargs))


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", TARGETS)
@examples(quick=25, deep=200)
@given(st.data())
def test_program_of_every_call_equals_pytorch(target: str, data: st.DataObject) -> None:
    _, args, kwargs = data.draw(calls(target))
    check(Single(data.draw(SCHEDULES), data.draw).program(target, args, kwargs))


NEGATIVE = torch.tensor([[-3.0, -0.5, 0.0, 2.0], [1.0, -1.0, -8.0, 0.25]])


CUBE: Final = torch.arange(24.0).reshape(2, 3, 4) * 37 % 11 - 5
TINY: Final = NEGATIVE / 1000
WHOLE: Final = torch.tensor([[-3, 0, 1], [2, 5, -1]])
HALVES: Final = torch.tensor([[255.0, -255.0], [3.0, 0.5]], dtype=torch.bfloat16)
FACTORS: Final = torch.tensor([2.0, -1.0, 0.5, 3.0])

GIVEN: Final[list[tuple[Any, ...]]] = [
    ("aten.elu.default", NEGATIVE, 0.5, 2.0),
    ("aten.elu.default", NEGATIVE.bfloat16(), 1.67, 1.05),
    ("aten.leaky_relu.default", NEGATIVE, 0.3),
    ("aten.softplus.default", NEGATIVE, 2.0, 1.0),
    ("aten.gelu.default", NEGATIVE),
    ("aten.relu6.default", NEGATIVE * 4),
    ("aten.hardtanh.default", NEGATIVE, -2, 1.5),
    ("aten.clamp.default", NEGATIVE, {"max": 0.5}),
    *((f"aten.{name}.Scalar", NEGATIVE, 0.5, 3) for name in ("add", "sub")),
    *((f"aten.{name}.Tensor", NEGATIVE, NEGATIVE + 1, {"alpha": -2}) for name in ("add", "sub")),
    ("aten.add.Tensor", NEGATIVE, torch.tensor(2)),
    ("aten.sub.Tensor", torch.tensor(2.0), NEGATIVE),
    ("aten.rsub.Tensor", NEGATIVE, NEGATIVE + 3, {"alpha": 1}),
    *(
        ("aten.div.Tensor_mode", HALVES, torch.full((2, 1), 1.2578125).bfloat16(), given)
        for given in ({"rounding_mode": name} for name in (None, "floor", "trunc"))
    ),
    *((f"aten.{name}.Scalar", WHOLE, 0.5) for name in ("gt", "lt", "eq")),
    *((f"aten.{name}.Scalar", NEGATIVE.bfloat16() / 5, 0.4) for name in ("eq", "gt")),
    ("aten.le.Scalar", NEGATIVE.half(), 1e6),
    ("aten.eq.Tensor", torch.tensor(0.4), NEGATIVE.bfloat16() / 5),
    ("aten.eq.Tensor", torch.tensor([0.4]), NEGATIVE.bfloat16() / 5),
    ("aten.eq.Tensor", torch.tensor(0.4), torch.tensor(0.4).bfloat16()),
    ("aten.lt.Tensor", NEGATIVE, torch.tensor(0)),
    *(("aten._to_copy.default", x, {"dtype": torch.bool}) for x in (NEGATIVE, WHOLE)),
    *(("aten._to_copy.default", WHOLE, {"dtype": dtype}) for dtype in (torch.float32, torch.int32)),
    ("aten.masked_fill.Scalar", NEGATIVE, NEGATIVE[:1] > 0, 7.0),
    ("aten.transpose.int", CUBE, -1, 0),
    ("aten.cat.default", [CUBE, CUBE[:1]]),
    ("aten.stack.default", [CUBE, CUBE + 1]),
    ("aten.unbind.int", CUBE, -2),
    ("aten.slice.Tensor", CUBE),
    ("aten.slice.Tensor", CUBE, -1, -3, -1),
    ("aten.slice.Tensor", CUBE, 1, -9, 2),
    ("aten.slice.Tensor", CUBE, 2, None, None, 3),
    ("aten.constant_pad_nd.default", CUBE, [0, 1, -1, 2, 1, -1], 1.5),
    *((f"aten.{name}.default", torch.tensor(-2.0)) for name in ("sum", "mean", "amax", "min")),
    ("aten.mean.dim", torch.tensor(-2.0), [0]),
    ("aten.mean.dim", CUBE, None),
    ("aten.sum.dim_IntList", CUBE, [], True),
    ("aten.prod.dim_int", CUBE, -1, True),
    ("aten.any.dim", CUBE > 4, 0, True),
    ("aten.all.dim", CUBE > -5, -1),
    *((f"aten.{name}.default", NEGATIVE, False) for name in ("std", "var")),
    *((f"aten.{name}.dim", CUBE, [-1], False, True) for name in ("std", "var")),
    *(
        (f"aten.{name}.correction", CUBE, [1, 2], given)
        for name in ("std", "var")
        for given in ({}, {"correction": None}, {"correction": 3})
    ),
    ("aten.var.correction", CUBE),
    ("aten.softmax.int", torch.tensor(-2.0), 0),
    ("aten._softmax.default", CUBE, -2, False),
    ("aten.rms_norm.default", TINY.bfloat16(), [4]),
    ("aten.rms_norm.default", TINY, [2, 4], None, 1e-4),
    ("aten.layer_norm.default", TINY, [4], None, FACTORS),
    ("aten.native_layer_norm.default", TINY, [2, 4], None, None, 1e-4),
]


COMPOSITE: Final[dict[str, Callable[[Any], Any]]] = {
    "broadcast_to": lambda x: torch.broadcast_to(x, (2, *x.shape)),
    "chunk": lambda x: torch.cat(x.chunk(2, -1)[::-1], -1),
    "contiguous": lambda x: x.mT.contiguous(),
    "dropout": lambda x: torch.nn.functional.dropout(x, training=False),
    "flatten": lambda x: x.flatten(1).unflatten(1, (2, -1)),
    "movedim": lambda x: x.movedim((0, -1), (1, 0)),
    "narrow": lambda x: x.narrow(2, -3, 2),
    "reshape": lambda x: x.swapaxes(0, 1).reshape(-1, x.shape[-1]),
    "to": lambda x: x.to(torch.bfloat16).float(),
    "view_as": lambda x: x.view_as(x).expand_as(x),
}
"""Calls without an importer, which PyTorch turns into other calls in every trace."""


class Calling(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x) * 2


@pytest.mark.parametrize("name", COMPOSITE)
def test_composite_call_without_importer_equals_pytorch(name: str) -> None:
    assert not any(target.split(".")[1] == name for target in supported())
    check(from_torch(Calling(COMPOSITE[name]).eval(), (CUBE,)))


def _parted(call: Any) -> tuple[str, list[Any], dict[str, Any]]:
    target, *args = call
    return target, args, args.pop() if isinstance(args[-1], dict) else {}


@pytest.mark.parametrize("call", GIVEN, ids=lambda call: str(call[0]))
def test_call_with_given_arguments_equals_pytorch(call: tuple[Any, ...]) -> None:
    check(Single(Schedule(tile_rows=2, tile_cols=4), lambda _: False).program(*_parted(call)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("aten.elu.default", NEGATIVE, 1, 1, 2), "expected ELU without an input scale"),
        (("aten.bitwise_and.Tensor", WHOLE, WHOLE), "its tensors are int64: expected booleans"),
        (
            ("aten.div.Tensor_mode", WHOLE, WHOLE * 2 + 1, {"rounding_mode": "trunc"}),
            "expected floating-point numbers to be divided towards zero",
        ),
        (("aten.rsub.Scalar", CUBE, 0.5, 0), "expected rsub without alpha"),
        (
            ("aten._to_copy.default", NEGATIVE, {"dtype": torch.int32}),
            "it converts data to int32: expected a floating-point type or booleans",
        ),
    ],
)
def test_unsupported_arguments_are_refused(call: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        Single(Schedule(), lambda _: False).program(*_parted(call))

    assert str(caught.value) == message


def test_all_importers_are_drawn() -> None:
    families = {"elementwise", "reductions", "views"}
    importers = {target: importer_of(target) for target in supported()}
    imported = {
        target
        for target, importer in importers.items()
        if importer is not None and importer.__module__.rpartition(".")[2] in families
    }
    assert imported == set(CASES)

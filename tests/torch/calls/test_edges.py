"""Special values: every imported call on NaN, infinities, both zeros and the extremes."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fabric import simulate
from fabric.graph.values.fit import unit_of
from operators.kernels.row_local import RowLocal
from operators.kernels.schedule import Schedule
from operators.torch.capture import array_of
from tests.profiles import examples
from tests.torch.calls import test_calls, test_places, test_products
from tests.torch.calls.calling import SIZES, Single
from tests.torch.calls.evaluating import evaluated

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

SUMS: Final = (
    "avg_pool|bag|upsample|conv|addmm|addmv|baddbmm|mm|matmul|linear|mv|dot|inner|bmm|outer|ger"
    "|norm|softmax|cum|prod"
    "|sum|mean|std|var|scatter|index_put|logcumsumexp"
)
PRODUCTS: Final = "conv|addmm|addmv|baddbmm|bmm|mm|matmul|linear|mv|dot|inner|outer|ger"

EXCEPTIONS: Final = (
    ("zeros", "amax|amin|clamp|max|maximum|median|kthvalue|min|minimum|max_pool",
     "PyTorch's vector code keeps the other one of 0 and -0 than its scalar code does"),
    ("zeros", SUMS, "the order of terms decides the sign of a sum that is 0"),
    ("large", SUMS, "the order of terms decides whether a sum overflows on the way"),
    ("large small", "fmod|remainder", "PyTorch's vector code gives NaN for a quotient of 2**24"),
    ("infinite small", PRODUCTS, "some of PyTorch's libraries flush subnormals"),
    ("infinite nan", "conv", "some of PyTorch's libraries multiply padding, others leave it out"),
    ("nan", "embedding_bag", "the maximum of a bag passes over all NaNs but the first number"),
    ("infinite", "upsample", "PyTorch reads a border twice, once with a weight of 0"),
    ("large infinite", "gelu", "the error function of oneDNN has no value for them"),
    ("large", "hardswish", "PyTorch multiplies by 6 before it divides by 6"),
    ("float16", "prod", "PyTorch rounds a product of float16 at each factor"),
    ("bfloat16 float16", "avg_pool3d", "PyTorch has no such call for 16 bits"),
    ("places", "kthvalue", "PyTorch may name any of several equal numbers"),
)  # fmt: skip
"""Numbers for which PyTorch is not a reference, by call, with reasons."""


def _left_out(target: str) -> set[str]:
    name = target.removeprefix("aten.")
    found = (kinds for kinds, names, _ in EXCEPTIONS if re.match(rf"_?(\w+_)?({names})", name))
    return set(" ".join(found).split())


def _edges(like: Any, dtype: torch.dtype, left_out: set[str], seed: int) -> Any:
    info = torch.finfo(dtype)
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, -100.0, 20.5]
    kinds = {
        "nan": (float("nan"),),
        "infinite": (float("inf"), -float("inf")),
        "large": (info.max, info.min),
        "small": (info.tiny, -info.tiny, info.smallest_normal / 4, -info.smallest_normal / 4),
    }
    for kind, more in kinds.items():
        numbers += () if kind in left_out else more
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(0, len(numbers), like.shape, generator=generator)
    return torch.tensor(numbers, dtype=torch.float64).to(dtype)[places]


def _call(target: str, draw: st.DrawFn) -> Arguments:
    x = torch.randn(draw(st.lists(SIZES, min_size=1, max_size=3)))
    return test_calls.CASES[target](draw, x)


CASES: Final[dict[str, Callable[[st.DrawFn], Arguments]]] = {
    **{target: partial(_call, target) for target in test_calls.TARGETS},
    **{
        target: lambda draw, case=case, module=module: case(module._Drawing(draw))  # type: ignore[misc]
        for module, table in (
            (test_places, test_places.CASES),
            (test_products, test_products.CALLS),
        )
        for target, case in table.items()
    },
}


def _changed(args: Any, to: Callable[[Any], Any]) -> Any:
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda each: to(each) if each.is_floating_point() else each, args
    )


def _found(target: str, args: Any, kwargs: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    single = Single(Schedule(tile_rows=4), lambda _: False)
    views, expected = single.views(target, args, kwargs)
    pairs = [
        (view, array_of(tensor))
        for view, tensor in zip(views, expected, strict=False)
        if view is not None
    ]
    kernels = single.importing.model.kernels
    if all(isinstance(each, RowLocal) for each in kernels):
        return [(evaluated(single.importing.model, view), wanted) for view, wanted in pairs]
    outputs = simulate(single.stored(views, expected), mode="functional").outputs
    return [
        (np.asarray(found), wanted)
        for found, (_, wanted) in zip(outputs.values(), pairs, strict=True)
    ]


def _check_close(found: np.ndarray, wanted: np.ndarray, scale: float, left_out: set[str]) -> None:
    found, given, unit = found.astype(np.float64), wanted.dtype, unit_of(wanted.dtype)
    wanted = wanted.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    infinite = np.isinf(found) | np.isinf(wanted)
    np.testing.assert_array_equal(found[infinite], wanted[infinite])
    if "zeros" not in left_out:
        zeros = (found == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(wanted)[zeros])
    known = np.isfinite(wanted)
    least = 4 * float(np.finfo(np.float32).tiny) if unit else 0
    atol = least + 8 * unit * scale * (given != np.bool_)
    np.testing.assert_allclose(found[known], wanted[known], rtol=64 * unit, atol=atol)


@pytest.mark.parametrize("target", sorted(CASES))
@examples(quick=2, deep=50)
@given(data=st.data())
def test_a_call_gives_what_pytorch_gives_for_numbers_at_the_edge(
    target: str, data: st.DataObject
) -> None:
    left_out = _left_out(target)
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
    assume(str(dtype).removeprefix("torch.") not in left_out)
    seeds = iter(range(data.draw(st.integers(0, 999)), 2000))
    args, kwargs = _changed(
        CASES[target](cast("st.DrawFn", data.draw)),
        lambda each: _edges(each, dtype, left_out, next(seeds)),
    )
    sums = re.match(rf"_?(\w+_)?({SUMS})", target.removeprefix("aten.")) is not None
    for found, wanted in _found(target, args, kwargs):
        if unit_of(wanted.dtype) or "places" not in left_out:
            _check_close(found, wanted, 100.0 if sums else 0.0, left_out)

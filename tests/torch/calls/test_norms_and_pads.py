# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from fabric import simulate
from operators.torch import Schedule, from_torch
from operators.torch.decompositions import decompositions
from tests.profiles import examples
from tests.torch.calls.calling import DTYPES
from tests.torch.test_capture import Computing

Drawn: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

functional = torch.nn.functional


class _Drawing:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.dtype = draw(DTYPES)

    def some(self, *shape: int) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        return torch.randn(shape, generator=generator).to(self.dtype)

    def size(self, least: int = 1, most: int = 5) -> int:
        return self.draw(st.integers(least, most))

    def places(self, shape: tuple[int, ...], size: int) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        return torch.randint(0, size, shape, generator=generator)

    def image(self, channels: int) -> Any:
        rank = self.size(1, 2)
        return self.some(self.size(1, 2), channels, *(self.size(2) for _ in range(rank)))


def _channels(given: _Drawing, count: int) -> list[Any]:
    return [given.some(count) for _ in range(2)] if given.draw(st.booleans()) else [None, None]


def _group_norm(given: _Drawing) -> Drawn:
    groups = given.size(1, 3)
    x = given.image(groups * given.size(1, 3))
    weight, bias = _channels(given, x.shape[1])
    return lambda x: functional.group_norm(x, groups, weight, bias, 1e-3), (x,)


def _batch_norm(given: _Drawing) -> Drawn:
    x = given.image(given.size())
    mean, variance = given.some(x.shape[1]).float(), given.some(x.shape[1]).float().abs() + 0.1
    weight, bias = _channels(given, x.shape[1])
    return lambda x: functional.batch_norm(x, mean, variance, weight, bias), (x,)


def _instance_norm(given: _Drawing) -> Drawn:
    x = given.image(given.size())
    return lambda x: functional.instance_norm(x, eps=1e-3), (x,)


def _index_add(given: _Drawing) -> Drawn:
    shape = [given.size() for _ in range(given.size(1, 3))]
    x, dim = given.some(*shape), given.draw(st.integers(0, len(shape) - 1))
    count = given.size()
    source = given.some(*(count if each == dim else size for each, size in enumerate(shape)))
    places = given.places((count,), shape[dim])
    return lambda x, source: x.index_add(dim, places, torch.tanh(source)), (x, source)


def _index_of_data(given: _Drawing) -> Drawn:
    x, count = given.some(given.size(2), given.size(2)), given.size()
    score = given.some(count, x.shape[0])
    if given.draw(st.booleans()):
        return lambda x, score: x[score.argmax(1)], (x, score)
    return lambda x, score: torch.relu(x).index_select(0, score.argmax(1)), (x, score)


def _masks(given: _Drawing) -> Drawn:
    x, other = given.some(given.size(), given.size()), given.some(given.size(1, 1), 1)
    return (
        lambda x, other: torch.where(x > other, x, -x).masked_fill(torch.relu(x) > 1, 0.5),
        (x, other),
    )


def _slices(given: _Drawing) -> Drawn:
    x = given.some(given.size(), given.size(2))
    first, last, step = given.size(0, 4), given.size(0, 5), given.size(1, 3)
    return lambda x: torch.cat([torch.relu(x)[:, first:last:step], x], 1), (x,)


def _pads(given: _Drawing) -> Drawn:
    mode = given.draw(st.sampled_from(["constant", "reflect", "replicate", "circular"]))
    x = given.image(given.size(1, 2))
    least = min(x.shape[2:])
    sides = [given.size(0, least - 1) for _ in range(2 * (x.ndim - 2))]
    return lambda x: functional.pad(torch.tanh(x), sides, mode=mode), (x,)


CASES: Final[dict[str, Callable[[_Drawing], Drawn]]] = {
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "index_add": _index_add,
    "places that data decide": _index_of_data,
    "masks that data decide": _masks,
    "slices": _slices,
    "pads": _pads,
}

SCHEDULES: Final = st.builds(
    Schedule, tile_rows=st.sampled_from([1, 2, 16]), tile_cols=st.sampled_from([2, 64])
)


@pytest.mark.timeout(0)  # two hundred modules, each traced and run twice
@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@examples(quick=1, deep=200)
def test_module_equals_pytorch(name: str, data: st.DataObject) -> None:
    function, args = CASES[name](_Drawing(data.draw))  # type: ignore[arg-type]
    program = from_torch(Computing(function).eval(), args, schedule=data.draw(SCHEDULES))

    report = simulate(program, mode="functional")

    assert report.verification is not None
    assert report.verified, "\n".join(report.verification.lines())
    assert simulate(program).cycles == report.cycles


@pytest.mark.timeout(0)
@given(data=st.data())
@examples(quick=2, deep=200)
def test_convolution_flops_and_bytes_equal_pytorchs(data: st.DataObject) -> None:
    draw = data.draw
    rank, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    numbers = st.integers(1, 3)
    channels, outputs = groups * draw(numbers), groups * draw(numbers)
    options = {"stride": draw(numbers), "dilation": draw(st.integers(1, 2)), "groups": groups}
    kind = (torch.nn.Conv1d, torch.nn.Conv2d)[rank - 1]
    torch.manual_seed(draw(st.integers(0, 99)))
    module = kind(
        channels, outputs, draw(numbers), padding=draw(st.integers(0, 1)), bias=False, **options
    )
    x = torch.randn(
        draw(st.integers(1, 2)), channels, *(draw(st.integers(5, 8)) for _ in range(rank))
    )
    with FlopCounterMode(display=False) as counter:
        result = module(x)

    report = simulate(from_torch(module.eval(), (x,), schedule=draw(SCHEDULES)), mode="functional")

    assert report.verified
    assert report.flops == counter.get_total_flops()
    moved = sum(math.prod(each.shape) for each in (x, module.weight, result))
    assert report.off_chip_traffic_bytes == 4 * moved


aten = torch.ops.aten

MADE: Final = decompositions()


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


X = some(2, 3, 4)
IMAGE, STATISTICS = some(2, 6, 3, 4), (some(6), some(6), some(6), some(6).abs() + 0.1)
BATCH = aten._native_batch_norm_legit_no_training.default
DIVIDED: Final[list[tuple[Any, ...]]] = [
    *((aten.linalg_vector_norm.default, X, order) for order in (2, 1, 0, 3, 0.5)),
    (aten.linalg_vector_norm.default, X, math.inf, [0, -1]),
    (aten.linalg_vector_norm.default, X, -math.inf, [1], True),
    *((aten.linalg_vector_norm.default, X.relu(), order, [1], True) for order in (2, 1, 0, 3)),
    (aten.linalg_vector_norm.default, X, math.inf, 1, True),
    (aten.linalg_vector_norm.default, X.bfloat16(), 2, None, False, torch.float32),
    (aten.linalg_vector_norm.default, X.bfloat16(), 1, [0]),
    *((aten._cdist_forward.default, X, some(2, 5, 4), order, None) for order in (1.0, 2.0, 3.0)),
    (aten._trilinear.default, some(3, 4), some(3, 4, 5), some(3, 5), [1, 3], [0], [1, 2], [2, 3]),
    (aten._trilinear.default, some(4), some(4), some(3), [0], [0], [1], [1]),
    (aten.unfold.default, some(3, 7), 1, 3, 2),
    (aten.unfold.default, some(6, 2, 3), 0, 2, 2),
    *((aten.unfold.default, some(4, 3), dim, 3, 1) for dim in (-2, -1)),
    *((aten.round.decimals, X * 30, decimals) for decimals in (0, 1, -1)),
    *((aten.var_mean.correction, X, dim) for dim in (None, [0, 2])),
    (aten.native_group_norm.default, IMAGE, None, None, 2, 6, 12, 3, 0.1),
    (aten.native_group_norm.default, IMAGE, *STATISTICS[:2], 2, 6, 12, 2, 0.1),
    (BATCH, IMAGE, *STATISTICS, 0.1, 0.2),
    (BATCH, IMAGE, None, None, *STATISTICS[2:], 0.1, 0.2),
    (BATCH, IMAGE[:, :, 0, 0], STATISTICS[0], None, *STATISTICS[2:], 0.1, 0.2),
]


@pytest.mark.parametrize("call", DIVIDED, ids=lambda call: str(call[0]))
def test_decomposition_equals_its_call(call: tuple[Any, ...]) -> None:
    target, *args = call
    keywords = {}
    if isinstance(args[-1], torch.dtype):
        keywords["dtype"] = args.pop()
    if target is aten.round.decimals:
        keywords["decimals"] = args.pop()
    expected, found = target(*args, **keywords), MADE[target](*args, **keywords)
    if isinstance(expected, tuple):
        several = target is aten.var_mean.correction
        assert len(found) == len(expected)
        expected, found = (each[: 2 if several else 1] for each in (expected, found))

    torch.testing.assert_close(found, expected)

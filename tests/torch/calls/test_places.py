from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.torch import from_torch
from operators.torch.call import Call, Spec, UnsupportedError
from operators.torch.capture import array_of
from operators.torch.registry import importer_of, supported
from tests.profiles import examples, spread
from tests.torch.calls.calling import DTYPES, SCHEDULES, SIZES, Single, check, maybe_repeated
from tests.torch.experts.playing import Player
from tests.torch.test_capture import Computing

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


class _Drawing:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.dtype = draw(DTYPES)

    def numbers(self, *shape: int) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        found = torch.randn(shape, generator=generator)
        if self.draw(st.booleans()):
            found = (found * 2).round().div(2)
        return maybe_repeated(self.draw, found.to(self.dtype))

    def distinct(self, *shape: int) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        count = int(np.prod(shape))
        order = torch.randperm(count, generator=generator)
        return ((order - count // 2) / 2).reshape(shape).to(self.dtype)

    def shape(self, least: int = 1, most: int = 3) -> list[int]:
        return self.draw(st.lists(SIZES, min_size=least, max_size=most))

    def dim(self, x: Any) -> int:
        return self.draw(st.integers(-x.ndim, x.ndim - 1))

    def places(self, shape: Any, size: int, least: int = 0) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        return torch.randint(least, size, tuple(shape), generator=generator)

    def each(self, rank: int, least: int, most: int) -> list[int]:
        return [self.draw(st.integers(least, most)) for _ in range(rank)]

    def image(self, rank: int, least: int = 4, most: int = 7) -> Any:
        channels = self.draw(st.integers(1, 3))
        return self.numbers(
            *self.draw(st.sampled_from([[1], [2]])), channels, *self.each(rank, least, most)
        )


Case: TypeAlias = Callable[[_Drawing], Arguments]


def _along(*others: Any, **names: Any) -> Case:
    def arguments(given: _Drawing) -> Arguments:
        x = given.numbers(*given.shape())
        return (x, given.dim(x), *others), names

    return arguments


def _sort(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    return (x, given.dim(x), given.draw(st.booleans())), {}


def _stable(given: _Drawing) -> Arguments:
    (x, dim, descending), _ = _sort(given)
    return (x,), {"stable": True, "dim": dim, "descending": descending}


def _kth(given: _Drawing) -> Arguments:
    x = given.distinct(*given.shape())  # for equal numbers PyTorch may return any index
    dim = given.dim(x)
    return (x, given.draw(st.integers(1, x.shape[dim])), dim, given.draw(st.booleans())), {}


def _topk(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.dim(x)
    return (x, given.draw(st.integers(1, x.shape[dim])), dim, given.draw(st.booleans())), {}


def _extreme(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    return (x, given.draw(st.sampled_from([None, given.dim(x)]))), {}


def _gather(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.dim(x)
    sizes = [given.draw(st.integers(1, size)) for size in x.shape]
    return (x, dim, given.places(sizes, x.shape[dim])), {}


def _scatter(given: _Drawing, *, adds_up: bool) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.dim(x)
    sizes = [given.draw(st.integers(1, size)) for size in x.shape]
    places = given.places(sizes, x.shape[dim])
    if not adds_up:
        places = torch.rand(sizes).argsort(dim)
    sizes = [size + given.draw(st.integers(0, 1)) for size in sizes]
    return (x, dim, places, given.numbers(*sizes)), {}


def _scatter_value(given: _Drawing) -> Arguments:
    (x, dim, places, _), _ = _scatter(given, adds_up=False)
    return (x, dim, places, 1.5), {}


def _reduced(names: list[str]) -> Case:
    def arguments(given: _Drawing) -> Arguments:
        given.dtype = torch.float32
        found, _ = _scatter(given, adds_up=True)
        return (*found, given.draw(st.sampled_from(names))), {}

    return arguments


def _index_put(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.draw(st.integers(0, x.ndim - 1))
    adds_up = given.draw(st.booleans())
    given.dtype = torch.float32 if adds_up else given.dtype
    x = x.to(given.dtype)
    size = x.shape[dim]
    places = given.places(given.shape(1, 1), size, -size) if adds_up else torch.arange(size)[::2]
    numbers = given.numbers(*x.shape[:dim], *places.shape, *x.shape[dim + 1 :])
    return (x, [None] * dim + [places], numbers, adds_up), {}


def _slice_scatter(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.dim(x)
    first = given.draw(st.integers(0, x.shape[dim] - 1))
    step = given.draw(st.integers(1, 2))
    numbers = given.numbers(*x.transpose(0, dim)[first::step].transpose(0, dim).shape)
    return (x, numbers, dim, first, 2**63 - 1, step), {}


def _select_scatter(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    dim = given.dim(x)
    at = given.draw(st.integers(-x.shape[dim], x.shape[dim] - 1))
    return (x, given.numbers(*x.select(dim, 0).shape), dim, at), {}


def _dims(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    every = st.lists(st.integers(0, x.ndim - 1), min_size=1, max_size=x.ndim, unique=True)
    return (x, given.draw(every)), {}


def _roll(given: _Drawing) -> Arguments:
    (x, dims), _ = _dims(given)
    if given.draw(st.booleans()):
        return (x, [given.draw(st.integers(-4, 4))]), {}
    return (x, [given.draw(st.integers(-4, 4)) for _ in dims], dims), {}


def _diagonal(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape(2))
    one, two = given.draw(st.permutations(range(x.ndim)))[:2]
    offset = given.draw(st.integers(1 - x.shape[one], x.shape[two] - 1))
    return (x, offset, one, two), {}


def _repeat(given: _Drawing) -> Arguments:
    x = given.numbers(*given.shape())
    more = given.draw(st.integers(0, 1))
    return (x, [given.draw(st.integers(1, 3)) for _ in range(x.ndim + more)]), {}


def _pool(rank: int, *others: Any, dilates: bool = False) -> Case:
    def arguments(given: _Drawing) -> Arguments:
        if rank == 3 and not dilates:
            given.dtype = torch.float32  # PyTorch has no other types
        kernel = given.each(rank, 1, 3)
        padding = [given.draw(st.integers(0, each // 2)) for each in kernel]
        more = [given.each(rank, 1, 2)] if dilates else []
        x = given.image(rank, 5)
        return (
            (x, kernel, given.each(rank, 1, 3), padding, *more, given.draw(st.booleans()), *others),
            {},
        )

    return arguments


def _counted(rank: int) -> Case:
    def arguments(given: _Drawing) -> Arguments:
        (*found,), _ = _pool(rank)(given)
        divisor = given.draw(st.sampled_from([None, 3])) if rank > 1 else None
        more = [] if divisor is None else [divisor]
        return (*found, given.draw(st.booleans()), *more), {}

    return arguments


def _adaptive(rank: int) -> Case:
    return lambda given: ((given.image(rank), given.each(rank, 1, 5)), {})


def _resized(rank: int, *corners: bool) -> Case:
    def arguments(given: _Drawing) -> Arguments:
        x = given.image(rank, 3, 5)
        if given.draw(st.booleans()):
            return (x, given.each(rank, 2, 8), *corners, None), {}
        return (x, None, *corners, [given.draw(st.sampled_from([2.0, 1.5, 0.5]))] * rank), {}

    return arguments


def _transposed(given: _Drawing, rank: int) -> tuple[Any, ...]:
    groups = given.draw(st.integers(1, 2))
    channels, outputs = groups * given.draw(st.integers(1, 2)), given.draw(st.integers(1, 3))
    stride = given.each(rank, 1, 3)
    weight = given.numbers(channels, outputs, *given.each(rank, 1, 3))
    bias = given.draw(st.sampled_from([None, given.numbers(groups * outputs)]))
    x = given.numbers(given.draw(st.integers(1, 2)), channels, *given.each(rank, 3, 5))
    added = [given.draw(st.integers(0, each - 1)) for each in stride]
    return x, weight, bias, stride, given.each(rank, 0, 1), added, groups


def _conv_transpose(rank: int) -> Case:
    return lambda given: (_transposed(given, rank), {})


def _convolution(given: _Drawing) -> Arguments:
    x, weight, bias, stride, padding, added, groups = _transposed(given, 2)
    if given.draw(st.booleans()):
        return (x, weight, bias, stride, padding, [1, 1], True, added, groups), {}
    weight = given.numbers(2 * groups, x.shape[1] // groups, 2, 2)
    bias = given.draw(st.sampled_from([None, given.numbers(2 * groups)]))
    return (x, weight, bias, stride, padding, [1, 1], False, [0, 0], groups), {}


def _bag(given: _Drawing) -> Arguments:
    table = given.numbers(6, given.draw(SIZES))
    offsets = torch.tensor([0, 2, 3])
    return (table, given.places([5], 6), offsets, False, given.draw(st.integers(0, 2))), {}


CASES: Final[dict[str, Case]] = {
    **{
        f"aten.{name}.default": _along()
        for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
    },
    "aten.median.default": lambda given: ((given.numbers(*given.shape()),), {}),
    **{f"aten.{name}.dim": _along() for name in ("max", "min", "median")},
    **{f"aten.{name}.default": _extreme for name in ("argmax", "argmin")},
    **{f"aten.{name}.default": _sort for name in ("sort", "argsort")},
    **{f"aten.{name}.stable": _stable for name in ("sort", "argsort")},
    "aten._embedding_bag.default": _bag,
    "aten._embedding_bag_forward_only.default": _bag,
    "aten._unsafe_index_put.default": _index_put,
    "aten.constant_pad_nd.default": lambda given: ((given.image(2), [1, 2, 0, 1], 0.5), {}),
    "aten.convolution.default": _convolution,
    "aten.copy.default": lambda given: ((given.numbers(2, 3), given.numbers(3)), {}),
    "aten.diagonal.default": _diagonal,
    "aten.diagonal_copy.default": _diagonal,
    "aten.flip.default": _dims,
    "aten.gather.default": _gather,
    "aten.index_put.default": _index_put,
    "aten.kthvalue.default": _kth,
    "aten.repeat.default": _repeat,
    "aten.roll.default": _roll,
    "aten.scatter.reduce": lambda given: (
        _reduced([""])(given)[0][:-1],
        {"reduce": given.draw(st.sampled_from(["add", "multiply"]))},
    ),
    "aten.scatter.src": lambda given: _scatter(given, adds_up=False),
    "aten.scatter.value": _scatter_value,
    "aten.scatter.value_reduce": lambda given: (
        (*_reduced([""])(given)[0][:3], 1.5),
        {"reduce": given.draw(st.sampled_from(["add", "multiply"]))},
    ),
    "aten.scatter_add.default": lambda given: (_reduced([""])(given)[0][:-1], {}),
    "aten.scatter_reduce.two": _reduced(["sum", "prod", "amax", "amin"]),
    "aten.select_scatter.default": _select_scatter,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.topk.default": _topk,
    **{f"aten.max_pool{rank}d_with_indices.default": _pool(rank, dilates=True) for rank in (2, 3)},
    **{f"aten.adaptive_max_pool{rank}d.default": _adaptive(rank) for rank in (2, 3)},
    **{f"aten.avg_pool{rank}d.default": _counted(rank) for rank in (1, 2, 3)},
    **{f"aten._adaptive_avg_pool{rank}d.default": _adaptive(rank) for rank in (2, 3)},
    "aten.adaptive_avg_pool1d.default": _adaptive(1),
    **{
        f"aten.{name}{rank}d.vec": _resized(rank)
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for rank in (1, 2, 3)
    },
    "aten.upsample_linear1d.vec": _resized(1, True),
    "aten.upsample_bilinear2d.vec": _resized(2, False),
    "aten.upsample_trilinear3d.vec": _resized(3, False),
    "aten.upsample_bicubic2d.vec": _resized(2, True),
    "aten.conv_transpose1d.default": _conv_transpose(1),
    "aten.conv_transpose2d.input": _conv_transpose(2),
    "aten.conv_transpose3d.input": _conv_transpose(3),
}


@pytest.mark.parametrize("target", sorted(CASES))
@given(data=st.data())
@examples(quick=2, deep=100)
def test_call_on_places_equals_pytorch(target: str, data: st.DataObject) -> None:
    args, kwargs = CASES[target](_Drawing(cast("st.DrawFn", data.draw)))
    single = Single(data.draw(SCHEDULES), cast("st.DrawFn", data.draw))

    check(single.program(target, args, kwargs))


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


MASK = torch.tensor([[True, False, True, False], [False, False, True, True], [True] * 4])

X, CUBE, IMAGE = some(3, 5), some(3, 4, 2), some(2, 3, 7, 6)
PLACES = torch.tensor([[0, 2, 1, 0], [2, 0, 0, 1]])


GIVEN: Final[list[tuple[Any, ...]]] = [
    ("aten.gather.default", torch.tensor(2.0), 0, torch.tensor(0)),
    ("aten.gather.default", some(3, 5, 2), 0, PLACES[:, :, None]),
    ("aten.scatter.src", torch.tensor(2.0), 0, torch.tensor([0]), torch.tensor([7.0])),
    ("aten.scatter.src", some(3, 5), -2, torch.tensor([[2, 0], [1, 2]]), some(2, 3)),
    *(
        ("aten.scatter_reduce.two", some(3, 5), 0, PLACES, some(2, 4), name)
        for name in ("sum", "prod", "amax", "amin")
    ),
    ("aten.roll.default", some(3, 4, 2), [4, 2, 1], [1, 0, 2]),
    ("aten.repeat.default", some(2, 1, 3), [2, 1, 3, 2]),
    ("aten.flip.default", some(3, 4, 2), [-1, -3]),
    ("aten.copy.default", some(2, 3).bfloat16(), some(3)),
    ("aten.index_put.default", some(3, 4), [MASK], torch.tensor(2.0)),
    ("aten.index_put.default", some(2, 3, 4), [None, MASK[:, 0]], some(1)),
    ("aten.index_put.default", some(3, 4), [torch.tensor([0, -3])], some(2, 4)),
    ("aten.index_put.default", some(4, 3, 2), [None, PLACES[0, :3]], some(2), True),
    (
        *("aten.index_put.default", some(2, 3, 4, 5)),
        *([None, torch.tensor([[2], [-3]]), torch.tensor([1, -4, 2])], some(2, 3, 5)),
    ),
    ("aten.index.Tensor", some(3, 4), [torch.tensor([0, -1]), torch.tensor([[3], [-4]])]),
    ("aten.index.Tensor", some(2, 3, 4, 5), [None, PLACES[:, :1], PLACES[:, :3]]),
    ("aten.slice_scatter.default", some(5, 3), some(0, 3), 0, 2, 2),
    ("aten.slice_scatter.default", some(5, 3), some(2, 3), {"end": 2}),
    ("aten.select_scatter.default", some(5, 3), some(5), -1, -1),
    ("aten.diagonal.default", some(3, 4, 2)),
    ("aten.diagonal.default", some(3, 4, 5), -1, -3, -1),
    ("aten.sort.default", CUBE),
    ("aten.argsort.default", CUBE),
    ("aten.argsort.stable", X, {"stable": False, "dim": 0, "descending": True}),
    *(
        (f"aten.{name}.default", torch.tensor(2.0), *more)
        for name, *more in (("sort",), ("argsort",), ("argmax",), ("kthvalue", 1), ("topk", 1))
    ),
    ("aten.cumprod.default", torch.tensor(2.0), 0),
    ("aten.max.dim", torch.tensor(2.0), 0),
    ("aten.median.dim", torch.tensor(2.0), -1),
    ("aten.median.dim", some(3, 4), 0, True),
    ("aten.kthvalue.default", CUBE, 2),
    ("aten.topk.default", CUBE, 3, 1, False),
    ("aten.argmax.default", CUBE, 1, True),
    ("aten.argmin.default", CUBE, None, True),
    ("aten.max_pool2d_with_indices.default", IMAGE, [3, 2]),
    ("aten.max_pool2d_with_indices.default", IMAGE[0], [3, 2], [], [1, 0], [1, 2]),
    ("aten.max_pool2d_with_indices.default", IMAGE, [2], [1, 3], [1], [2, 1], True),
    ("aten.avg_pool1d.default", IMAGE[0], [3]),
    ("aten.avg_pool2d.default", IMAGE, 2, [], 1, {"divisor_override": 5}),
    ("aten.upsample_nearest2d.vec", some(1, 2, 3, 4), None, [2.3, 0.5]),
    ("aten.upsample_bilinear2d.vec", some(1, 2, 3, 4), None, False, [1.7, 0.5]),
    ("aten.upsample_trilinear3d.vec", some(1, 1, 3, 2, 4), [2, 3, 5], True, None),
    ("aten.upsample_bicubic2d.vec", some(1, 2, 4, 3), [5, 6], False, None),
    (
        *("aten._embedding_bag.default", some(6, 3), PLACES[0], torch.tensor([0, 1, 4])),
        *(False, 1, False, None, True),
    ),
    (
        *("aten.conv2d.default", some(2, 4, 7, 6), some(6, 2, 3, 2), some(6)),
        *([2, 1], [1, 0], [1, 2], 2),
    ),
    ("aten.conv2d.default", some(4, 7, 6), some(3, 4, 2, 3)),
    ("aten.conv2d.padding", some(1, 2, 5, 6), some(3, 2, 2, 3), None, [1], "same", [1, 2]),
    ("aten.conv_transpose1d.default", some(4, 5), some(4, 3, 2), None, [2], [1], [1]),
    (
        *("aten.conv_transpose2d.input", some(1, 4, 3, 5), some(4, 3, 2, 3), some(6)),
        *([2, 1], [1, 0], [1, 0], 2, [1, 2]),
    ),
    (
        *("aten.convolution.default", some(1, 4, 3, 5), some(4, 3, 2, 3), None),
        *([2, 1], [1, 0], [1, 2], True, [1, 0], 2),
    ),
]
"""Calls with defaults, scalars, negative indices and keywords, which are not drawn."""


class _OfKernels(Single):
    """A program of one call whose tensors all come from kernels, row by row."""

    def _computed(self, tensor: Any) -> View:
        data = array_of(tensor)
        name = f"t{self._count}"
        spec = Spec(data.shape, data.dtype)
        view = View.of(Stored.of(name, data.shape, data.dtype, lambda: data))
        call = Call("aten.clone.default", name, (), {}, (spec,), False, "", None, None)
        return self.importing.once(call, view) if data.size else view


def _parted(call: Any) -> tuple[str, list[Any], dict[str, Any]]:
    target, *args = call
    return target, args, args.pop() if isinstance(args[-1], dict) else {}


def of_memory(*call: Any) -> None:
    check(Single(Schedule(tile_rows=2, tile_cols=4), lambda _: False).program(*_parted(call)))


@pytest.mark.parametrize(
    "call", spread(map(pytest.param, GIVEN), 24), ids=lambda call: str(call[0])
)
def test_call_with_given_arguments_equals_pytorch(call: tuple[Any, ...]) -> None:
    of_memory(*call)
    check(_OfKernels(Schedule(tile_rows=2, tile_cols=4), lambda _: True).program(*_parted(call)))


def _computed(*shape: int, dtype: type = np.int64) -> View:
    return View.of(Computed("computed", shape, np.dtype(dtype), Layout.tiled(shape, shape)))


UNKNOWN: Final = View.of(Stored.of("unknown", (2,), np.dtype(np.int64), lambda: np.arange(2)))
BAG: Final = ("aten._embedding_bag.default", some(6, 3), PLACES[0])
SEVERAL: Final = (
    "data decide places of several dimensions: expected places of one, or constant ones"
)
NEIGHBOURS: Final = "expected neighbouring dimensions to be indexed"
KNOWN_BAGS: Final = "expected constant bags, of rows without weights"
REDUCING: Final = "expected a sum, product or extreme with the present numbers"
ONE: Final = "it writes several numbers to the places of a mask: expected one number for all"

REFUSED: Final[list[tuple[tuple[Any, ...], str]]] = [
    *(
        (
            ("aten.index.Tensor", some(3, 4), [torch.tensor([0, place])]),
            f"place {place} of 3: expected numbers of -3 to 2",
        )
        for place in (3, -4)
    ),
    (("aten.index_put.default", some(3, 4), [MASK[:, 1]], some(2)), ONE),
    (("aten.index.Tensor", some(3, 4), [_computed(2), _computed(2)]), SEVERAL),
    (
        ("aten.index.Tensor", some(3, 4), [_computed(3, dtype=np.bool_)]),
        "data decide which places there are: expected integers that name them",
    ),
    (("aten.index.Tensor", some(3, 4, 3), [PLACES[0], None, PLACES[0]]), NEIGHBOURS),
    (("aten.scatter_reduce.two", X, 0, PLACES, X, "mean"), REDUCING),
    (("aten.scatter_reduce.two", X, 0, PLACES, X, "sum", {"include_self": False}), REDUCING),
    ((*BAG, UNKNOWN), KNOWN_BAGS),
    *(
        (
            ("aten.addmm.default", some(2), some(3, 4), some(4, 2), {"beta": 0, "alpha": alpha}),
            f"alpha is {alpha} and beta 0: expected alpha to be 1 if beta is 0",
        )
        for alpha in (2, 0.5)
    ),
    (
        ("aten.scaled_dot_product_attention.default", *([some(1, 3, 4)] * 3), MASK[:, :3], 0, True),
        "expected a mask or is_causal, not both",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_unsupported_places_are_refused(
    call: tuple[Any, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = [torch.zeros(1)]
    monkeypatch.setattr("tests.torch.calls.calling.called", lambda *_: empty)
    with pytest.raises(UnsupportedError) as caught:
        of_memory(*call)

    assert str(caught.value) == message


OF_DATA: Final[dict[str, tuple[tuple[int, ...], Callable[[Player, Any, Any], Any]]]] = {
    "rows": ((3, 5, 2), lambda p, x, at: p.play("aten.index.Tensor", x, [at])),
    "in the middle": ((2, 3, 5), lambda p, x, at: p.play("aten.index.Tensor", x, [None, at])),
    "columns": ((2, 5, 3), lambda p, x, at: p.play("aten.index.Tensor", x, [None, None, at])),
    "numbers": ((3,), lambda p, x, at: p.play("aten.index.Tensor", x, [at])),
    "of a table": ((3, 5), lambda p, x, at: p.play("aten.embedding.default", x, at)),
}


@pytest.mark.parametrize("name", OF_DATA)
def test_index_by_data_equals_pytorch(name: str) -> None:
    table, indexed = OF_DATA[name]
    shape = 2, 4, 3
    for from_kernel in (False, True):
        player = Player(Schedule(tile_rows=2, tile_cols=4))
        x = player.given(some(*table))
        if from_kernel:
            x = player.play("aten.neg.default", x)
        at = player.play("aten.argmax.default", player.given(some(*shape)), -1)

        check(player.program(indexed(player, x, at)))


PUT_OR_TAKEN: Final[dict[str, Callable[[Player, Any, Any, int], Any]]] = {
    "put": lambda p, x, at, dim: p.play(
        "aten.index_put.default", x, [None] * dim + [at], p.given(some(*x.tensor.shape) + 1)
    ),
    "added": lambda p, x, at, dim: p.play(
        "aten.index_put.default", x, [None] * dim + [at], p.given(some(*x.tensor.shape) + 1), True
    ),
    "taken": lambda p, x, at, dim: p.play(
        "aten.index_select.default", x, dim - len(x.tensor.shape), at
    ),
}


@pytest.mark.parametrize("name", PUT_OR_TAKEN)
def test_order_by_data_equals_pytorch(name: str) -> None:
    shape, dim = (2, 4, 3), 1
    player = Player(Schedule(tile_rows=2, tile_cols=4))
    at = player.play("aten.argsort.default", player.given(some(4)))

    check(player.program(PUT_OR_TAKEN[name](player, player.given(some(*shape)), at, dim)))


def test_all_place_importers_are_drawn() -> None:
    imported = {
        target
        for target in supported()
        if (importer := importer_of(target)) is not None
        and importer.__module__.rpartition(".")[2] in {"indexing", "ordering", "pooling"}
    }

    assert imported <= set(CASES)


DATA: Final[dict[str, tuple[Callable[..., Any], tuple[int, ...]]]] = {
    "the rows that a sort names": (lambda x: x[x.sum(1).argsort()], (4, 5)),
    "what is not among the largest": (
        lambda x: x.masked_fill(torch.zeros_like(x).scatter(1, x.topk(2)[1], 1.0) == 0, -9.0),
        (4, 5),
    ),
    "sums by a computed class": (
        lambda x: torch.zeros(5, 5).index_add(0, x.argmax(1), x),
        (4, 5),
    ),
    "a mask that data decide": (lambda x: torch.where(x > x.mean(), x, -x), (4, 5)),
    "every other column": (lambda x: torch.cat([-x[..., 1::2], x[..., ::2]], -1), (3, 8)),
    "one column for many, joined": (lambda x: torch.cat([x, x[:, :1].expand(3, 4)], 1), (3, 8)),
    "shares of one column for many": (lambda x: x[:, :1].expand(3, 4).softmax(1), (3, 8)),
    "heads that are cut in windows": (
        lambda x: torch.relu(x).view(2, 2, 4, 2, 4, 3).transpose(2, 3).reshape(8, 16, 3)[1:7],
        (2, 8, 8, 3),
    ),
}


@pytest.mark.parametrize("name", spread(DATA, 4))
def test_module_with_data_dependent_places_equals_pytorch(name: str) -> None:
    function, shape = DATA[name]
    torch.manual_seed(0)

    check(from_torch(Computing(function), (torch.randn(shape),)))

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Stored, View
from operators.torch import from_torch
from operators.torch.capture import array_of
from operators.torch.registry import importer_of, supported
from tests.profiles import examples, spread
from tests.torch.calls.calling import DTYPES, Single, check, maybe_repeated
from tests.torch.test_capture import Computing

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

SCHEDULES: Final = st.builds(
    Schedule,
    tile_rows=st.sampled_from([1, 2, 4, 16]),
    tile_cols=st.sampled_from([2, 4, 64]),
    tile_inner=st.sampled_from([1, 3, 4, 64]),
    order=st.sampled_from(["row", "weight", "output"]),
)
SIZES: Final = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 11])


class _Drawing:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.dtype = draw(DTYPES)

    def sizes(self, count: int) -> list[int]:
        return [self.draw(SIZES) for _ in range(count)]

    def some(self, *shape: int) -> Any:
        generator = torch.Generator().manual_seed(self.draw(st.integers(0, 99)))
        return maybe_repeated(self.draw, torch.randn(shape, generator=generator).to(self.dtype))

    def leading(self) -> list[int]:
        return [self.draw(st.integers(1, 3)) for _ in range(self.draw(st.integers(0, 2)))]

    def broadcast(self, *shape: int) -> Any:
        sizes = [self.draw(st.sampled_from([1, each])) for each in shape]
        return self.some(*sizes[self.draw(st.integers(0, len(sizes))) :])


def _mm(given: _Drawing) -> Arguments:
    rows, inner, cols = given.sizes(3)
    return (given.some(rows, inner), given.some(inner, cols)), {}


def _bmm(given: _Drawing) -> Arguments:
    batch, rows, inner, cols = given.sizes(4)
    return (given.some(batch, rows, inner), given.some(batch, inner, cols)), {}


def _matmul(given: _Drawing) -> Arguments:
    rows, inner, cols = given.sizes(3)
    lead = given.leading()
    left = given.draw(st.sampled_from([[inner], [rows, inner], [*lead, rows, inner]]))
    others = [given.draw(st.sampled_from([1, each])) for each in lead]
    others = others[given.draw(st.integers(0, len(lead))) :]
    right = given.draw(st.sampled_from([[inner], [inner, cols], [*others, inner, cols]]))
    return (given.some(*left), given.some(*right)), {}


def _linear(given: _Drawing) -> Arguments:
    inner, cols = given.sizes(2)
    x, weight = given.some(*given.leading(), inner), given.some(cols, inner)
    bias = given.draw(st.sampled_from([None, given.some(cols)]))
    return (x, weight, bias), {}


def _addmm(given: _Drawing) -> Arguments:
    (left, right), _ = _mm(given)
    factors: dict[str, Any] = given.draw(
        st.sampled_from([{}, {"alpha": 2}, {"beta": 0.5, "alpha": 3}, {"beta": 0}])
    )
    return (given.broadcast(left.shape[0], right.shape[1]), left, right), factors


def _baddbmm(given: _Drawing) -> Arguments:
    (left, right), _ = _bmm(given)
    return (given.broadcast(*left.shape[:2], right.shape[2]), left, right), {}


def _mv(given: _Drawing) -> Arguments:
    rows, inner = given.sizes(2)
    return (given.some(rows, inner), given.some(inner)), {}


def _addmv(given: _Drawing) -> Arguments:
    (matrix, vector), _ = _mv(given)
    return (given.broadcast(matrix.shape[0]), matrix, vector), {}


def _dot(given: _Drawing) -> Arguments:
    (inner,) = given.sizes(1)
    return (given.some(inner), given.some(inner)), {}


def _inner(given: _Drawing) -> Arguments:
    rows, inner, cols = given.sizes(3)
    return (given.some(rows, inner), given.some(cols, inner)), {}


def _outer(given: _Drawing) -> Arguments:
    rows, cols = given.sizes(2)
    return (given.some(rows), given.some(cols)), {}


def _conv(given: _Drawing, rank: int, **more: Any) -> Arguments:
    draw = given.draw
    groups = draw(st.integers(1, 2))
    size = [draw(st.integers(1, 3)) for _ in range(rank)]
    space = [draw(st.integers(5, 7)) for _ in range(rank)]
    channels, outputs = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 4))
    batch = draw(st.sampled_from([[], [1], [2]]))
    weight = given.some(outputs, channels // groups, *size)
    bias = draw(st.sampled_from([None, given.some(outputs)]))
    dilation = draw(st.integers(1, 2))
    names = {"dilation": [dilation], "groups": groups} | more
    return (given.some(*batch, channels, *space), weight, bias), names


def _strided(rank: int, overload: str, given: _Drawing) -> Arguments:
    if overload == "padding":
        return _conv(
            given, rank, stride=[1], padding=given.draw(st.sampled_from(["same", "valid"]))
        )
    steps = {
        name: [given.draw(st.integers(*ends))]
        for name, ends in {"stride": (1, 3), "padding": (0, 2)}.items()
    }
    return _conv(given, rank, **steps)


def _embedding(given: _Drawing) -> Arguments:
    table = given.some(*given.sizes(2))
    return (table, _numbers(given, table.shape[0], least=0)), {}


def _index(given: _Drawing) -> Arguments:
    shape = given.sizes(given.draw(st.integers(1, 3)))
    first = given.draw(st.integers(0, len(shape) - 1))
    count = given.draw(st.integers(1, len(shape) - first))
    numbers = [_numbers(given, size) for size in shape[first : first + count]]
    if count > 1:
        numbers = [each.reshape(-1)[:1] for each in numbers]  # any of these shapes broadcast
    return (given.some(*shape), [None] * first + numbers), {}


def _index_select(given: _Drawing) -> Arguments:
    shape = given.sizes(given.draw(st.integers(1, 3)))
    dim = given.draw(st.integers(-len(shape), len(shape) - 1))
    return (given.some(*shape), dim, _numbers(given, shape[dim], least=0).reshape(-1)), {}


def _numbers(given: _Drawing, size: int, least: int | None = None) -> Any:
    shape = given.leading()
    generator = torch.Generator().manual_seed(given.draw(st.integers(0, 99)))
    return torch.randint(-size if least is None else least, size, shape, generator=generator)


CALLS: Final[dict[str, Callable[[_Drawing], Arguments]]] = {
    "aten.mm.default": _mm,
    "aten.bmm.default": _bmm,
    "aten.matmul.default": _matmul,
    "aten.linear.default": _linear,
    "aten.addmm.default": _addmm,
    "aten.baddbmm.default": _baddbmm,
    "aten.mv.default": _mv,
    "aten.addmv.default": _addmv,
    "aten.dot.default": _dot,
    "aten.inner.default": _inner,
    "aten.outer.default": _outer,
    "aten.ger.default": _outer,
    **{
        f"aten.conv{rank}d.{overload}": functools.partial(_strided, rank, overload)
        for rank in (1, 2, 3)
        for overload in ("default", "padding")
    },
}


TABLES: Final[dict[str, Callable[[_Drawing], Arguments]]] = {
    "aten.embedding.default": _embedding,
    "aten.index.Tensor": _index,
    "aten.index_select.default": _index_select,
}

INDEXING: Final = ("aten.index.Tensor", "aten.index_select.default")

PLACES: Final = {
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
    "aten.conv_transpose1d.default",
    "aten.conv_transpose2d.input",
    "aten.conv_transpose3d.input",
    "aten.convolution.default",
}


class _FromMemory(Single):
    """A program of one call with all tensors in memory."""

    def _computed(self, tensor: Any) -> View:
        data = array_of(tensor)
        return View.of(Stored.of(f"t{self._count}", data.shape, data.dtype, lambda: data))


@pytest.mark.parametrize("target", sorted(CALLS))
@given(data=st.data())
@examples(quick=6, deep=150)
def test_product_equals_pytorch(target: str, data: st.DataObject) -> None:
    given = _Drawing(cast("st.DrawFn", data.draw))
    args, kwargs = CALLS[target](given)

    check(Single(data.draw(SCHEDULES), cast("st.DrawFn", data.draw)).program(target, args, kwargs))


@pytest.mark.parametrize("target", sorted(TABLES))
@given(data=st.data())
@examples(quick=6, deep=100)
def test_table_in_memory_equals_pytorch(target: str, data: st.DataObject) -> None:
    given = _Drawing(cast("st.DrawFn", data.draw))
    args, kwargs = TABLES[target](given)

    check(
        _FromMemory(data.draw(SCHEDULES), cast("st.DrawFn", data.draw)).program(
            target, args, kwargs
        )
    )


def test_all_product_importers_are_drawn() -> None:
    families = {"products", "tables"}
    imported = {
        target
        for target in supported()
        if (importer := importer_of(target)) is not None
        and importer.__module__.rsplit(".", 1)[1] in families
    }

    # The importer of experts gets indexing first, and leaves other indexing to tables.
    assert imported == (set(CALLS | TABLES) | PLACES) - {*INDEXING}
    assert {*INDEXING} <= set(supported())


def test_indexed_computed_table_equals_pytorch() -> None:
    torch.manual_seed(0)

    check(
        from_torch(
            torch.nn.Sequential(torch.nn.SiLU(), Computing(lambda x: x[torch.tensor([2, 0])])),
            (torch.randn(3, 4),),
        )
    )


class _Embedded(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(97, 8), torch.nn.Embedding(16, 8)
        self.layer, self.head = torch.nn.Linear(8, 12), torch.nn.Linear(12, 97, bias=False)

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(torch.nn.functional.silu(self.layer(x)))


@pytest.mark.parametrize("order", spread(["row", "weight", "output"], 1))
def test_embedding_model_equals_pytorch(order: Any) -> None:
    torch.manual_seed(0)
    ids = torch.randint(0, 97, (2, 6))

    check(from_torch(_Embedded().eval(), (ids,), schedule=Schedule(tile_rows=4, order=order)))


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "bij,kj->bik", "bi...,bi->b..."])
def test_einsum_equals_pytorch(equation: str) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = {"bij,bjk->bik": (2, 4, 3), "bij,kj->bik": (5, 4), "bi...,bi->b...": (2, 3)}
    a = torch.randn(2, 3, 4, generator=generator)
    b = torch.randn(*shapes[equation], generator=generator)

    check(from_torch(Computing(lambda a, b: torch.einsum(equation, a, b)), (a, b)))

"""Lengths that data decide: rows that a mask chooses, slices whose end is a number of data."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from fabric import ProgramError, simulate
from operators.torch import from_torch
from operators.torch.chosen.rules import RULES, arithmetic, pointwise
from operators.torch.chosen.settling import NeedsLengthError, Settled, has_lengths_of_data
from operators.torch.chosen.tensors import Choice, Chosen, Number
from tests.profiles import spread
from tests.torch.test_capture import Computing

ROWS, COLS = 12, 8

WEIGHT = torch.randn(COLS, COLS, generator=torch.Generator().manual_seed(0))


def linear(x: Any) -> Any:
    return nn.functional.linear(x, WEIGHT.to(x.dtype))


def positive(x: Any) -> Any:
    return x[:, 0] > 0


def first(x: Any) -> Any:
    count = positive(x).sum().item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count]


def put_back(x: Any) -> Any:
    mask = positive(x)
    y = x.clone()
    y[mask] = linear(x[mask])
    return y


def added_back(x: Any) -> Any:
    places = positive(x).nonzero().squeeze(-1)
    return x.index_add(0, places, linear(x[places]) * 2)


def attended(x: Any) -> Any:
    rows = x[positive(x)]
    return nn.functional.scaled_dot_product_attention(x[None], rows[None], (rows * 2)[None])


def stepped(x: Any) -> Any:
    rows = x[positive(x)]
    return (rows * torch.arange(rows.shape[0])[:, None]).sum(0)


def squares(x: Any) -> Any:
    rows = x[positive(x)]
    return rows.T @ (rows + 1)


def headed(x: Any) -> Any:
    rows = linear(x[positive(x)])
    return rows.view(rows.shape[0], 2, COLS // 2).transpose(0, 1).amax(1)


def between(x: Any) -> Any:
    count = positive(x).sum().item()
    torch._check(count >= 0)
    torch._check(count + 2 <= x.shape[0])
    return x.narrow(0, 2, count).mean(0)


CHOOSING: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x[positive(x)].sum(0),
    "mean": lambda x: x[positive(x)].mean(0),
    "mean of all": lambda x: x[x > 0].mean(),
    "mean by hand": lambda x: (r := x[positive(x)]).sum(0) / r.shape[0],
    "largest and smallest": lambda x: (r := x[positive(x)]).amax(0) - r.amin(0),
    "variance": lambda x: x[positive(x)].var(0),
    "product": lambda x: linear(x[positive(x)]).sum(0),
    "norm": lambda x: nn.functional.layer_norm(x[positive(x)], (COLS,)).sum(0),
    "softmax along rows": lambda x: ((r := x[positive(x)]).softmax(0) * r).sum(0),
    "running sum": lambda x: x[positive(x)].cumsum(0).amax(0),
    "columns": lambda x: x[:, x[0] > 0].sum(1),
    "masked_select": lambda x: x.masked_select(x > 0).sum(),
    "where": lambda x: x[torch.where(x > 0)].sum(),
    "slice": lambda x: linear(first(x)).sum(0),
    "slice, mean": lambda x: first(x).mean(0),
    "narrow": between,
    "twice": lambda x: (r := x[positive(x)])[r[:, 1] > 0].sum(0),
    "among all": lambda x: torch.cat([x[positive(x)], x]).mean(0),
    "in two": lambda x: (r := linear(x[positive(x)]).chunk(2, -1))[0].sum(0) + r[1].amax(0),
    "put back": put_back,
    "added back": added_back,
    "attention": attended,
    "numbered": stepped,
    "with one another": squares,
    "heads": headed,
    "a row": lambda x: x[x[:, 0].argmax().item()] * 2,
    "a column from behind": lambda x: linear(x)[:, -1 - x[0].argmin().item() % 3],
}


@pytest.mark.parametrize("name", spread(CHOOSING, 8))
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.deep)]
)
def test_what_data_choose(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    module = Computing(CHOOSING[name])
    for shift in (0, 4) if dtype is torch.float32 else (0,):
        x = torch.randn(ROWS, COLS).to(dtype)
        x[:, 0] += shift
        x[0, 0] = x[3, 0] = 1
        if name == "narrow":
            x[-2:, 0] = -1
        report = simulate(from_torch(module, (x,)), mode="functional")

        assert report.verified, (shift, report.verification)


KNOWN: dict[str, tuple[Callable[..., Any], str]] = {
    "mask": (lambda x, mask: x[mask] * 2, "mask"),
    "nonzero": (lambda x, mask: linear(x[mask.nonzero().squeeze(-1)]), "mask"),
    "put back": (lambda x, mask: torch.zeros_like(x).index_put((mask,), linear(x[mask])), "mask"),
    "slice": (lambda x, counts: x[: counts[0].item()].flip(0), "counts"),
    "repeats": (lambda x, counts: x.repeat_interleave(counts, 0), "counts"),
}
"""Functions, and which argument they are given beside x."""


@pytest.mark.parametrize("name", KNOWN)
def test_what_known_arguments_choose(name: str) -> None:
    torch.manual_seed(2)
    function, argument = KNOWN[name]
    known = {"mask": torch.rand(ROWS) > 0.5, "counts": torch.randint(1, 4, (ROWS,))}[argument]
    given = torch.randn(ROWS, COLS), known

    assert simulate(from_torch(Computing(function), given), mode="functional").verified


def test_known_choices_beside_symbols() -> None:
    module = Computing(KNOWN["mask"][0])
    for count in (5, 9, 9):
        given = torch.randn(count, COLS), torch.rand(count) > 0.4
        given[1][0] = True
        lengths = {0: Dim.AUTO}, {0: Dim.AUTO}
        program = from_torch(module, given, dynamic_shapes=(lengths,))
        assert simulate(program, mode="functional").verified


NEEDING: dict[str, tuple[Callable[..., Any], str]] = {
    "returned": (lambda x: x[positive(x)], "which the module returns"),
    "sorted": (lambda x: x[positive(x)].sort(0).values.sum(0), r"which sort in line \d+ needs"),
    "the first one": (lambda x: x[positive(x)][0], r"which .* needs"),
    "two choices": (lambda x: (x[x > 0] + 1).sum() + x[x > 1].cumsum(0)[:1].sum(), "needs"),
    "repeats of data": (
        lambda x: x.repeat_interleave((x[:, 0] > 0).long() + 1, 0).sum(0),
        r"which repeat_interleave in line \d+ needs",
    ),
}


@pytest.mark.parametrize("name", NEEDING)
def test_who_needs_a_length(name: str) -> None:
    function, message = NEEDING[name]
    with pytest.raises(ProgramError, match=f"data decide the size of its result, .*{message}"):
        from_torch(Computing(function), (torch.randn(ROWS, COLS),))


def test_in_timing_mode() -> None:
    module = Computing(lambda x: x.index_add(0, (at := positive(x).nonzero()[:, 0]), x[at] * 2))
    x = torch.randn(ROWS, COLS)

    cycles = {simulate(from_torch(module, (each,))).cycles for each in (x, x - 3, x.to("meta"))}

    assert len(cycles) == 1


MASK = torch.tensor([True, False, True, True, False])
TWO_MASK = torch.tensor([[False, True, True], [True, False, True]])
CHOICE, TWO = Choice(MASK, "mask"), Choice(TWO_MASK.view(-1), "rows")
OTHER = Choice(torch.tensor([True, True, False, False, True]), "other")
COUNT, OTHERS = (Number(each.count, each) for each in (CHOICE, OTHER))

aten = torch.ops.aten
attention = aten.scaled_dot_product_attention.default


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def chosen(*shape: int, dim: int = 0, choice: Choice = CHOICE) -> Chosen:
    return Chosen(Chosen(some(*shape), choice, dim).filled(math.nan), choice, dim)


def integers(*given: int, is_place: bool = False) -> Chosen:
    return Chosen(torch.tensor(given), CHOICE, 0, is_place=is_place)


PLACES = integers(0, 1, 2, 3, 4, is_place=True)
MIXED = integers(4, 0, 0, 2, 1)


@dataclass(frozen=True)
class Node:
    target: Any
    args: Any


def named(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [named(each) for each in value]
    return {id(MASK): "mask", id(TWO_MASK): "rows"}.get(id(value))


def ruled(target: Any, *args: Any, **kwargs: Any) -> Any:
    node: Any = Node(target, named(args))
    rule = RULES.get(str(target))
    return pointwise(node, args, kwargs) if rule is None else rule(node, *args, **kwargs)


def parted(call: tuple[Any, ...]) -> tuple[Any, list[Any], dict[str, Any]]:
    target, *args = call
    keywords = args.pop() if isinstance(args[-1], dict) else {}
    return target, args, keywords


def taken(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [taken(each) for each in value]
    if isinstance(value, Number):
        return int(value.value)
    if isinstance(value, Chosen):
        assert 0 <= value.dim < value.tensor.ndim
        return value.tensor.index_select(value.dim, value.choice.valid.nonzero()[:, 0])
    return value


CALLS: list[tuple[Any, ...]] = [
    (aten.unbind.int, chosen(2, 5, dim=1)),
    (aten.unbind.int, chosen(2, 5, 3, dim=1), -1),
    (aten.unbind.int, chosen(5, 2), 1),
    (aten.index.Tensor, some(2, 5), [None, MASK]),
    (aten.index.Tensor, some(2, 3, 4), [TWO_MASK]),
    (aten.index.Tensor, some(4, 2, 3, 2), [None, TWO_MASK]),
    (aten.index.Tensor, some(5, 3), [PLACES]),
    (aten.index.Tensor, some(6, 3), [PLACES]),
    (aten.index.Tensor, some(2, 5), [None, MIXED]),
    (aten.index.Tensor, some(5, 6, 2), [MIXED, PLACES]),
    (aten.index.Tensor, chosen(2, 5, dim=1), [None, Chosen(some(5) > 0, CHOICE, 0)]),
    (operator.getitem, [chosen(5), chosen(2, 5, dim=1)], 1),
    (aten.index_select.default, some(5, 3), 0, MIXED),
    (aten.index_select.default, some(3, 5), -1, PLACES),
    (aten.index_select.default, some(3, 5), -1, MIXED),
    (aten.masked_select.default, some(2, 3), TWO_MASK),
    (aten.masked_select.default, some(2, 5), MASK),
    (aten.slice.Tensor, chosen(5, 7), 1, 1, 6, 2),
    (aten.slice.Tensor, some(5, 7), -1, 2, COUNT),
    (aten.slice.Tensor, some(5, 7), 1, COUNT, 6),
    (aten.slice.Tensor, some(5, 7), 0, None, Number(torch.tensor(-2))),
    (aten.slice.Tensor, some(5, 7), 1, -COLS // 2, Number(torch.tensor(-1))),
    (aten.slice.Tensor, some(5), 0, Number(torch.tensor(0)), -1),
    (aten.slice.Tensor, some(5), 0, Number(torch.tensor(-3))),
    (aten.view.default, chosen(5, 4), [COUNT, 2, 2]),
    (aten.view.default, chosen(5, 4), [-1, 2, 2]),
    (aten.view.default, chosen(4, 5, 5, dim=2), [2, 10, COUNT]),
    (aten.view.default, chosen(5, 5, dim=1), [1, 5, COUNT]),
    (aten.reshape.default, chosen(2, 2, 5, 3, dim=2), [4, COUNT, 3]),
    (aten.expand.default, chosen(5, 1), [COUNT, 4]),
    (aten.expand.default, chosen(5), [2, COUNT]),
    (aten.expand.default, chosen(5, 1), [2, -1, 3]),
    (aten.expand.default, some(2, 1), [2, COUNT]),
    (aten.expand.default, some(1, 2), [COUNT, 2]),
    (aten.zeros.default, [COUNT, 2]),
    (aten.ones.default, [2, COUNT]),
    (aten.full.default, [2, COUNT], 3),
    (aten.arange.default, COUNT),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), 0),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), 1),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), 2),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), -1),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), -3),
    (aten.squeeze.dim, chosen(1, 5, 1, dim=1), 0),
    (aten.squeeze.dim, chosen(1, 5, 1, dim=1), -1),
    (aten.squeeze.dim, chosen(2, 5, 1, dim=1), 0),
    (aten.squeeze.dims, chosen(1, 1, 5, 1, dim=2), [0, -1]),
    (aten.select.int, chosen(2, 5, 3, dim=1), 0, 1),
    (aten.select.int, chosen(2, 5, 3, dim=1), -1, 0),
    (aten.select.int, some(2, 5, 3), 1, Number(torch.tensor(2))),
    (aten.select.int, some(2, 5, 3), -1, Number(torch.tensor(-1))),
    (aten.permute.default, chosen(2, 5, 3, dim=1), [-1, 0, 1]),
    (aten.permute.default, chosen(2, 5, 3, dim=1), [1, 2, 0]),
    (aten.transpose.int, chosen(2, 5, 3, dim=1), 0, -2),
    (aten.transpose.int, chosen(2, 5, 3, dim=1), 0, 2),
    (aten.t.default, chosen(5, 3)),
    (aten.sum.dim_IntList, chosen(5, 3), [0]),
    (aten.sum.dim_IntList, chosen(2, 5, 3, dim=1), [0, -1]),
    (aten.sum.dim_IntList, chosen(2, 5, 3, dim=1), [0], True),
    (aten.sum.dim_IntList, chosen(2, 5, 3, dim=1), [2]),
    (aten.sum.dim_IntList, chosen(2, 5, 3, dim=1), [-2, 0], True),
    (aten.sum.dim_IntList, chosen(5, 3), None),
    (aten.sum.dim_IntList, chosen(5, 3), []),
    (aten.sum.default, chosen(5, 3)),
    (aten.prod.dim_int, chosen(5, 3), 0),
    (aten.amax.default, chosen(5, 3), [0], True),
    (aten.amax.default, chosen(5, 3), [-1]),
    (aten.amax.default, MIXED, [0]),
    (aten.amin.default, chosen(5, 3)),
    (aten.amin.default, integers(4, 0, 3, 2, 1)),
    (aten.max.default, integers(-4, 0, -3, -2, 1)),
    (aten.min.default, chosen(5, 3)),
    (aten.logsumexp.default, chosen(5, 3), [0]),
    (aten.any.dim, Chosen(torch.tensor([0, 1, 0, 0, 1]) > 0, CHOICE, 0), 0),
    (aten.all.dim, Chosen(torch.tensor([1, 0, 1, 1, 0]) > 0, CHOICE, 0), 0),
    (aten.mean.dim, chosen(2, 5, 3, dim=1), [0, 1]),
    (aten.mean.dim, chosen(2, 5, 3, dim=1), [1], True),
    (aten.mean.dim, chosen(2, 5, 3, dim=1), [0]),
    (aten.mean.default, chosen(2, 5, dim=1)),
    (aten.var.dim, chosen(2, 5, dim=1), [1]),
    (aten.var.dim, chosen(2, 5, 3, dim=1), [1, 2], False, True),
    (aten.std.dim, chosen(2, 5, dim=1), [-1, 0], True),
    (aten.softmax.int, chosen(2, 5, dim=1), 1),
    (aten.softmax.int, chosen(2, 5, dim=1), 0),
    (aten._softmax.default, chosen(2, 5, dim=1), -1, False),
    (aten.log_softmax.int, chosen(5, 2), 0),
    (aten.cumsum.default, chosen(5, 2), 0),
    (aten.cumsum.default, chosen(5, 2), -1),
    (aten.layer_norm.default, chosen(5, 4), [4], some(4), some(4), 1e-3),
    (aten.rms_norm.default, chosen(2, 5, 4, dim=1), [4]),
    (aten.linear.default, chosen(5, 4), some(3, 4), some(3)),
    (aten.embedding.default, some(5, 3), MIXED),
    (aten.matmul.default, chosen(5, 4), some(4, 3)),
    (aten.matmul.default, chosen(2, 5, 4, dim=1), some(4)),
    (aten.matmul.default, chosen(5, 2, 4), some(4)),
    (aten.matmul.default, chosen(5, 2, 4), some(4, 3)),
    (aten.matmul.default, some(3, 4), chosen(4, 5, dim=1)),
    (aten.matmul.default, some(4), chosen(4, 5, dim=1)),
    (aten.matmul.default, some(4), chosen(5, 4, 3)),
    (aten.matmul.default, some(2, 4), chosen(5, 4, 3)),
    (aten.matmul.default, chosen(3, 5, dim=1), chosen(5, 2)),
    (aten.matmul.default, chosen(3, 5, dim=1), chosen(5)),
    (aten.matmul.default, chosen(5), chosen(5, 2)),
    (aten.mm.default, some(3, 4), chosen(4, 5, dim=1)),
    (aten.bmm.default, chosen(2, 5, 4, dim=1), some(2, 4, 3)),
    (aten.mv.default, chosen(5, 4), some(4)),
    (attention, some(2, 3, 4), *(chosen(2, 5, 4, dim=1),) * 2),
    (attention, *(chosen(2, 5, 4, dim=1),) * 3),
    (
        *(attention, chosen(2, 5, 4, dim=1)),
        *(some(2, 3, 4), some(2, 3, 6), None, 0.0, False),
    ),
    (aten.index_add.default, some(5, 3), 0, MIXED, chosen(5, 3)),
    (aten.index_add.default, some(3, 6), -1, MIXED, chosen(3, 5, dim=1)),
    (aten.index_put.default, some(5), [MASK], chosen(5)),
    (aten.index_put.default, some(5, 3), [MASK], chosen(5, 3)),
    (aten.index_put.default, some(2, 3, 4), [TWO_MASK], chosen(6, 4, choice=TWO)),
    (aten.index_put.default, some(5, 3), [PLACES], chosen(5, 3)),
    (aten.index_put.default, some(5, 3), [PLACES], some(3)),
    (aten.index_put.default, some(6, 3), [MIXED], chosen(5, 3), True),
    (aten.index_put.default, some(6, 3), [MIXED], some(3), True),
    (aten.masked_scatter.default, some(2, 3), TWO_MASK, chosen(6, choice=TWO)),
    (aten.cat.default, [chosen(5, 3), some(2, 3)]),
    (aten.cat.default, [some(2, 3), chosen(2, 5, dim=1), chosen(2, 5, dim=1, choice=OTHER)], -1),
    (aten.cat.default, [chosen(5, 3), chosen(5, 2)], 1),
    (aten.split.Tensor, chosen(5, 3), 2, 1),
    (aten.split.Tensor, chosen(3, 5, dim=1), 2),
    (aten.split_with_sizes.default, chosen(2, 5, 3, dim=1), [1, 2], -1),
    (aten.chunk.default, chosen(5, 4), 2, 1),
    (aten.linalg_vector_norm.default, chosen(5, 3)),
    (aten.linalg_vector_norm.default, chosen(5, 3), 1, [0], True),
    (aten.linalg_vector_norm.default, chosen(5, 3), math.inf, [-2]),
    (aten.clone.default, chosen(5, 3)),
    (aten.to.dtype, chosen(5, 3), torch.float64),
    (aten.zeros_like.default, chosen(5, 3)),
    (aten.full_like.default, chosen(5, 3), 2),
    (aten.softplus.default, chosen(5, 3)),
    (aten.nonzero.default, MASK),
    (aten.nonzero.default, torch.tensor([[0, 2, 0], [-1, 0, 3]])),
    (aten.nonzero_numpy.default, TWO_MASK),
    (aten.where.default, MASK),
    (aten.arange.default, COUNT, {"dtype": torch.float32}),
    (aten.full.default, [COUNT], 3, {"dtype": torch.int32}),
    (aten.sum.dim_IntList, chosen(5, 3), [0], {"dtype": torch.float64}),
    (aten.mean.default, MIXED, {"dtype": torch.float32}),
    (aten.var.correction, chosen(2, 5, 3, dim=1), [1, 2], {"correction": 0}),
    (aten.var.correction, chosen(2, 5, dim=1), [1], {"correction": 2, "keepdim": True}),
    (aten.std.correction, chosen(2, 5, dim=1), None, {"correction": None}),
    (aten.cumsum.default, MIXED, 0, {"dtype": torch.float32}),
    (attention, some(2, 3, 4), *(chosen(2, 5, 4, dim=1),) * 2, {"scale": 0.3}),
    (aten.index_add.default, some(5, 3), 0, MIXED, chosen(5, 3), {"alpha": 2}),
    (aten.linalg_vector_norm.default, chosen(5, 3), {"dtype": torch.float64}),
    (aten.amax.default, Chosen(MASK, CHOICE, 0)),
    (aten.amin.default, Chosen(MASK, CHOICE, 0)),
    (aten.add.Tensor, chosen(5), some(2, 1)),
    (aten.add.Tensor, chosen(5, 2), some(2)),
    (aten.mul.Tensor, chosen(5, 2), chosen(5, 1)),
    (aten.div.Tensor, some(3), COUNT),
    (aten.where.self, Chosen(some(5) > 0, CHOICE, 0), chosen(5), some(1)),
]

LENGTHS: list[tuple[Any, ...]] = [
    (aten.nonzero.default, chosen(5)),
    (aten.nonzero.default, torch.tensor(True)),
    (aten.unbind.int, chosen(5, 2)),
    (aten.index.Tensor, chosen(5, 2), [None, MASK[:2]]),
    (aten.index.Tensor, chosen(5), [torch.tensor([1])]),
    (aten.index.Tensor, chosen(5), [MIXED]),
    (aten.index.Tensor, chosen(5), [Chosen(some(5) > 0, OTHER, 0)]),
    (aten.index.Tensor, chosen(5, 2), [Chosen(some(5, 2) > 0, CHOICE, 0)]),
    (aten.index.Tensor, chosen(2, 5, dim=1), [MASK[:2], Chosen(some(5) > 0, CHOICE, 0)]),
    (aten.index.Tensor, some(5, 2), [torch.tensor([1])]),
    (aten.index.Tensor, some(5, 5), [MIXED, torch.tensor([1])]),
    (aten.index.Tensor, some(5, 5), [MIXED, replace(MIXED, choice=OTHER)]),
    (aten.index.Tensor, some(5, 2, 5), [MIXED, None, MIXED]),
    (aten.index.Tensor, some(5, 2), [replace(MIXED, tensor=MIXED.tensor[:, None])]),
    (aten.index_select.default, chosen(5, 2), 1, torch.tensor([1])),
    (aten.index_select.default, chosen(5, 2), 0, MIXED),
    (aten.masked_select.default, chosen(5), MASK),
    (aten.masked_select.default, some(5), Chosen(some(5) > 0, CHOICE, 0)),
    (aten.slice.Tensor, chosen(5, 3), 0, 1),
    (aten.slice.Tensor, chosen(5, 3), -2, 1),
    (aten.slice.Tensor, chosen(5, 3), 1, 0, COUNT),
    (aten.slice.Tensor, some(5, 3), 0, 0, COUNT, 2),
    (aten.view.default, some(6), [COUNT, 2]),
    (aten.view.default, chosen(5, 4), [OTHERS, 4]),
    (aten.view.default, chosen(5, 4), [Number(torch.tensor(3)), 4]),
    (aten.view.default, chosen(5, 4), [2, -1]),
    (aten.view.default, chosen(5, 4, 5), [4, 5, 5]),
    (aten.expand.default, chosen(5, 1), [OTHERS, 4]),
    (aten.expand.default, some(1, 1), [COUNT, COUNT]),
    (aten.expand.default, some(1, 1), [Number(torch.tensor(3)), 2]),
    (aten.zeros.default, [COUNT, COUNT]),
    (aten.full.default, [COUNT], COUNT),
    (aten.arange.default, Number(torch.tensor(3))),
    (aten.squeeze.dim, chosen(5, 1), 0),
    (aten.squeeze.dims, chosen(5, 1), [1, -2]),
    (aten.select.int, chosen(2, 5, dim=1), -1, 0),
    (aten.select.int, chosen(2, 5, dim=1), 0, COUNT),
    (aten.var.dim, chosen(5, 3), [1]),
    (aten.layer_norm.default, chosen(5, 4), [5, 4]),
    (aten.layer_norm.default, chosen(4, 5, dim=1), [5]),
    (aten.layer_norm.default, chosen(5, 4), [4], chosen(5)),
    (aten.linear.default, some(3, 5), chosen(2, 5, dim=1)),
    (aten.linear.default, chosen(5, 4), chosen(5, 4)),
    (aten.linear.default, chosen(3, 5, dim=1), some(2, 5)),
    (aten.embedding.default, chosen(5, 3), MIXED),
    (aten.embedding.default, chosen(5, 3), torch.tensor([1])),
    (aten.embedding.default, some(5, 3), MIXED, COUNT),
    (aten.matmul.default, chosen(3, 5, dim=1), some(5, 2)),
    (aten.matmul.default, some(3, 5), chosen(5, 2)),
    (aten.matmul.default, some(5), chosen(5)),
    (aten.matmul.default, chosen(3, 5, dim=1), chosen(5, 2, choice=OTHER)),
    (aten.matmul.default, chosen(5, 3), chosen(3, 5, dim=1)),
    (attention, some(5, 4), chosen(5, 4), some(5, 4)),
    (attention, some(5, 4), some(5, 4), chosen(5, 4)),
    (attention, some(3, 4), chosen(5, 4), chosen(5, 4, choice=OTHER)),
    (attention, some(2, 3, 5), *(chosen(2, 5, 5, dim=2),) * 2),
    (attention, chosen(5, 3, 4), some(1, 5, 4), some(1, 5, 4)),
    (attention, some(3, 4), *(chosen(5, 4),) * 2, some(3, 5)),
    (attention, some(5, 4), *(chosen(5, 4),) * 2, None, 0.0, True),
    (attention, some(5, 4), *(chosen(5, 4),) * 2, {"is_causal": True}),
    (attention, some(2, 3, 4), *(chosen(1, 5, 4, dim=1),) * 2, {"enable_gqa": True}),
    (aten.index_add.default, some(5, 3), 0, MIXED, some(5, 3)),
    (aten.index_add.default, some(5, 3), 0, MIXED, chosen(5, 3, choice=OTHER)),
    (aten.index_add.default, some(5, 5), 1, MIXED, chosen(5, 5)),
    (aten.index_add.default, chosen(5, 5), 1, MIXED, chosen(5, 5, dim=1)),
    (aten.index_put.default, chosen(5, 5), [MIXED], chosen(5, 5)),
    (aten.index_put.default, some(5, 5), [MIXED, MIXED], chosen(5)),
    (aten.index_put.default, some(5), [MASK], chosen(5), True),
    (aten.index_put.default, some(5), [MASK], some(3)),
    (aten.index_put.default, some(5), [MASK], chosen(5, choice=OTHER)),
    (aten.index_put.default, some(5, 5), [MASK], chosen(5, 5, dim=1)),
    (aten.index_put.default, some(5, 5), [PLACES], chosen(5, 5, choice=OTHER)),
    (aten.index_put.default, some(5, 5), [PLACES], chosen(5, 5, dim=1)),
    (aten.index_put.default, some(5, 3), [replace(MIXED, tensor=MIXED.tensor[:, None])], some(3)),
    (aten.index_put.default, some(5, 3), [MIXED], chosen(5, 3)),
    (aten.index_put.default, some(6, 3), [PLACES], chosen(5, 3)),
    (aten.masked_scatter.default, chosen(5), MASK, chosen(5)),
    (aten.masked_scatter.default, some(5), MASK, some(3)),
    (aten.masked_scatter.default, some(2, 5), MASK, chosen(5)),
    (aten.cat.default, [chosen(5, 3), some(5, 2)], 1),
    (aten.cat.default, [chosen(5, 3), chosen(5, 2, choice=OTHER)], -1),
    (aten.cat.default, [chosen(5, 5), chosen(5, 5, dim=1)]),
    (aten.split.Tensor, chosen(5, 3), 2),
    (aten.split.Tensor, chosen(5, 3), COUNT, 1),
    (aten.linalg_vector_norm.default, chosen(5, 3), 0),
    (aten.linalg_vector_norm.default, chosen(5, 3), -1),
    (aten.linalg_vector_norm.default, chosen(5, 3), 2, [1]),
    (aten.full_like.default, chosen(5, 3), COUNT),
    (aten.add.Tensor, chosen(5), some(2, 5)),
    (aten.add.Tensor, chosen(5), chosen(5, 1)),
    (aten.add.Tensor, chosen(5), chosen(5, choice=OTHER)),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call[0]))
def test_a_call_on_what_is_chosen(call: tuple[Any, ...]) -> None:
    target, args, keywords = parted(call)
    expected = target(*taken(args), **keywords)
    expected = list(expected) if isinstance(expected, tuple) else expected

    torch.testing.assert_close(taken(ruled(target, *args, **keywords)), expected)


@pytest.mark.parametrize("call", LENGTHS, ids=lambda call: str(call[0]))
def test_a_call_that_needs_a_length(call: tuple[Any, ...]) -> None:
    target, args, keywords = parted(call)

    assert ruled(target, *args, **keywords) is None


def test_numbers_of_places() -> None:
    x, seven = chosen(2, 5, dim=1), Number(torch.tensor(7))

    assert ruled(aten.sym_size.int, x, 0) == 2
    assert [taken(ruled(aten.sym_size.int, x, dim)) for dim in (1, -1)] == [3, 3]
    assert ruled(aten.sym_size.int, x, 1).of is CHOICE
    assert taken(ruled(aten.item.default, torch.tensor([4]))) == 4
    assert ruled(aten.item.default, MIXED) is None
    node: Any = Node(operator.sub, ())
    assert taken(arithmetic(node, (seven, COUNT))) == 4
    assert taken(arithmetic(node, (10, COUNT))) == 7
    assert arithmetic(node, (MIXED, COUNT)) is None
    for start, of in ((None, CHOICE.size), (0, CHOICE.size), (1, None), (COUNT, None)):
        end = Number(torch.tensor(2))
        ruled(aten.slice.Tensor, some(5), 0, start, end)
        assert (end.of and end.of.size) == of


@pytest.mark.parametrize(
    ("call", "is_place"),
    [
        ((aten.nonzero.default, MASK), True),
        ((aten.nonzero.default, TWO_MASK), False),
        ((aten.select.int, replace(PLACES, tensor=PLACES.tensor[:, None]), 1, 0), True),
        ((aten.clone.default, PLACES), True),
        ((aten.clone.default, MIXED), False),
        ((aten.zeros_like.default, PLACES), False),
        ((aten.slice.Tensor, replace(PLACES, tensor=PLACES.tensor[:, None]), 1), False),
        ((aten.cumsum.default, PLACES, 0), False),
        ((aten.softmax.int, replace(PLACES, tensor=some(5)), 0), False),
        ((aten.embedding.default, some(5, 3), PLACES), False),
        ((aten.index.Tensor, PLACES, [Chosen(some(5) > 0, CHOICE, 0)]), False),
        ((aten.add.Tensor, PLACES, 1), False),
    ],
)
def test_which_are_the_numbers_of_places(call: tuple[Any, ...], is_place: bool) -> None:
    assert ruled(*call).is_place is is_place


def traced(build: Callable[..., Any], count: int) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    given = [graph.placeholder(f"x{number}") for number in range(count)]
    graph.output(build(graph.call_function, *given))
    return torch.fx.GraphModule({}, graph)


REPEAT = aten.repeat_interleave.self_Tensor
X, TIMES, BYTES = some(2, 3), torch.tensor([1, 2]), torch.tensor([0, 1], dtype=torch.uint8)

SETTLED: list[tuple[Callable[..., Any], list[Any], Any]] = [
    (lambda call, x, times: call(REPEAT, (x, times, 0)), [X, TIMES], X[[0, 1, 1]]),
    (lambda call, x, times: call(REPEAT, (x, times)), [X[0, :2], TIMES], X[0, [0, 1, 1]]),
    (
        lambda call, x, times: call(REPEAT, (x, times)),
        [X, torch.tensor([1, 0, 2, 0, 0, 1])],
        X.flatten()[[0, 2, 2, 5]],
    ),
    (lambda call, x, mask: call(aten.index.Tensor, (x, [mask])), [X, BYTES], X[1:]),
    (lambda call, x, mask: call(aten.index.Tensor, (x, [None, mask])), [X, MASK[:3]], X[:, [0, 2]]),
    (
        lambda call, x, mask: call(aten.index.Tensor, (x, [mask, mask])),
        [some(2, 2), BYTES],
        some(2, 2)[1, 1:],
    ),
    (
        lambda call, x, mask: call(aten.index_put.default, (x, [mask], x), {"accumulate": True}),
        [X[:1].expand(2, 3), torch.tensor([True, True])],
        2 * X[:1].expand(2, 3),
    ),
    (
        lambda call, x: call(
            aten.sum.default, (call(aten.index.Tensor, (x, [call(aten.gt.Scalar, (x, 0))])),)
        ),
        [X],
        X.relu().sum(),
    ),
    (lambda call, x, n: call(aten.add.Scalar, (x, call(operator.sub, (n, 1)))), [X, 3], X + 2),
]


@pytest.mark.parametrize(("build", "given", "expected"), SETTLED)
def test_what_known_arguments_settle(
    build: Callable[..., Any], given: list[Any], expected: torch.Tensor
) -> None:
    torch.testing.assert_close(Settled(traced(build, len(given)), given)(*given), expected)


def test_what_is_known() -> None:
    def known(*given: Any) -> list[Any]:
        module = traced(
            lambda call, x: call(aten.neg.default, (call(aten.clone.default, (x,)),)), 1
        )
        return [each.tolist() for each in Settled(module, given).known.values()]

    assert known(TIMES) == [[1, 2], [-1, -2]]
    assert known(TIMES.float()) == known(TIMES.to("meta")) == []
    assert not Settled(traced(lambda call: call(aten.ones.default, ([2],)), 0), ()).known


def test_checks_are_left_out() -> None:
    def build(call: Any, x: Any, mask: Any) -> Any:
        call(aten._assert_async.msg, (mask, "no"))
        return call(aten.neg.default, (x,))

    given = X, torch.tensor(False)
    torch.testing.assert_close(Settled(traced(build, 2), given)(*given), -X)


@pytest.mark.parametrize(
    ("last", "name"),
    [
        (lambda call, rows, times: call(REPEAT, (rows, times, 0)), "repeat_interleave"),
        (lambda call, rows, _: call(aten.sort.default, (rows,)), "sort"),
        (lambda _, rows, __: rows, "output"),
    ],
)
def test_which_call_needs_a_length(last: Callable[..., Any], name: str) -> None:
    def build(call: Any, x: Any, times: Any) -> Any:
        mask = call(aten.gt.Scalar, (x, 0))
        return last(call, call(aten.index.Tensor, (x, [mask])), times)

    module = traced(build, 2)
    with pytest.raises(NeedsLengthError) as caught:
        Settled(module, (X[0, :2], TIMES))(X[0, :2], TIMES)

    assert name in caught.value.node.name
    assert str(caught.value).startswith(caught.value.node.name)


def test_where_a_length_is_of_data() -> None:
    for target in (aten.item.default, aten._local_scalar_dense.default):
        assert has_lengths_of_data(traced(lambda call, x, t=target: call(t, (x,)), 1).graph)
    plain = traced(lambda call, x: call(aten.neg.default, (x,)), 1).graph
    for node in plain.nodes:
        node.meta["val"] = X
    assert not has_lengths_of_data(plain)

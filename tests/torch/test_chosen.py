# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from fabric import ProgramError, simulate
from operators.torch import from_torch
from operators.torch.chosen.rules import RULES, pointwise
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


@pytest.mark.parametrize("name", spread(CHOOSING, 6))
def test_rows_that_data_choose_are_verified(name: str) -> None:
    torch.manual_seed(1)
    module = Computing(CHOOSING[name])
    for shift in (0, 4):
        x = torch.randn(ROWS, COLS)
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


@pytest.mark.parametrize("name", spread(KNOWN, 2))
def test_choices_of_known_arguments_are_verified(name: str) -> None:
    torch.manual_seed(2)
    function, argument = KNOWN[name]
    known = {"mask": torch.rand(ROWS) > 0.5, "counts": torch.randint(1, 4, (ROWS,))}[argument]
    given = torch.randn(ROWS, COLS), known

    assert simulate(from_torch(Computing(function), given), mode="functional").verified


def test_known_mask_with_symbolic_lengths_is_read_again() -> None:
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
def test_call_that_needs_a_chosen_length_is_named(name: str) -> None:
    function, message = NEEDING[name]
    with pytest.raises(ProgramError, match=f"data decide the size of its result, .*{message}"):
        from_torch(Computing(function), (torch.randn(ROWS, COLS),))


def test_cycles_do_not_depend_on_the_choice() -> None:
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
    (aten.index.Tensor, some(2, 5), [None, MASK]),
    (aten.index.Tensor, some(4, 2, 3, 2), [None, TWO_MASK]),
    (aten.index.Tensor, some(5, 3), [PLACES]),
    (operator.getitem, [chosen(5), chosen(2, 5, dim=1)], 1),
    (aten.index_select.default, some(5, 3), 0, MIXED),
    (aten.masked_select.default, some(2, 3), TWO_MASK),
    (aten.slice.Tensor, chosen(5, 7), 1, 1, 6, 2),
    (aten.slice.Tensor, some(5, 7), -1, 2, COUNT),
    (aten.view.default, chosen(5, 4), [COUNT, 2, 2]),
    (aten.view.default, chosen(4, 5, 5, dim=2), [2, 10, COUNT]),
    (aten.reshape.default, chosen(2, 2, 5, 3, dim=2), [4, COUNT, 3]),
    (aten.expand.default, chosen(5, 1), [COUNT, 4]),
    (aten.zeros.default, [COUNT, 2]),
    (aten.ones.default, [2, COUNT]),
    (aten.full.default, [2, COUNT], 3),
    (aten.arange.default, COUNT),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), 0),
    (aten.unsqueeze.default, chosen(2, 5, dim=1), -1),
    (aten.squeeze.dim, chosen(1, 5, 1, dim=1), 0),
    (aten.squeeze.dims, chosen(1, 1, 5, 1, dim=2), [0, -1]),
    (aten.select.int, chosen(2, 5, 3, dim=1), 0, 1),
    (aten.permute.default, chosen(2, 5, 3, dim=1), [-1, 0, 1]),
    (aten.transpose.int, chosen(2, 5, 3, dim=1), 0, -2),
    (aten.t.default, chosen(5, 3)),
    (aten.sum.dim_IntList, chosen(5, 3), [0]),
    (aten.sum.default, chosen(5, 3)),
    (aten.prod.dim_int, chosen(5, 3), 0),
    (aten.amax.default, chosen(5, 3), [0], True),
    (aten.amin.default, chosen(5, 3)),
    (aten.max.default, integers(-4, 0, -3, -2, 1)),
    (aten.min.default, chosen(5, 3)),
    (aten.logsumexp.default, chosen(5, 3), [0]),
    (aten.any.dim, Chosen(torch.tensor([0, 1, 0, 0, 1]) > 0, CHOICE, 0), 0),
    (aten.all.dim, Chosen(torch.tensor([1, 0, 1, 1, 0]) > 0, CHOICE, 0), 0),
    (aten.mean.dim, chosen(2, 5, 3, dim=1), [0, 1]),
    (aten.mean.default, chosen(2, 5, dim=1)),
    (aten.var.dim, chosen(2, 5, 3, dim=1), [1, 2], False, True),
    (aten.std.dim, chosen(2, 5, dim=1), [-1, 0], True),
    (aten.softmax.int, chosen(2, 5, dim=1), 1),
    (aten._softmax.default, chosen(2, 5, dim=1), -1, False),
    (aten.log_softmax.int, chosen(5, 2), 0),
    (aten.cumsum.default, chosen(5, 2), 0),
    (aten.layer_norm.default, chosen(5, 4), [4], some(4), some(4), 1e-3),
    (aten.rms_norm.default, chosen(2, 5, 4, dim=1), [4]),
    (aten.linear.default, chosen(5, 4), some(3, 4), some(3)),
    (aten.embedding.default, some(5, 3), MIXED),
    (aten.matmul.default, chosen(5, 4), some(4, 3)),
    (aten.matmul.default, chosen(2, 5, 4, dim=1), some(4)),
    (aten.mm.default, some(3, 4), chosen(4, 5, dim=1)),
    (aten.bmm.default, chosen(2, 5, 4, dim=1), some(2, 4, 3)),
    (aten.mv.default, chosen(5, 4), some(4)),
    (attention, some(2, 3, 4), *(chosen(2, 5, 4, dim=1),) * 2),
    (aten.index_add.default, some(5, 3), 0, MIXED, chosen(5, 3)),
    (aten.index_put.default, some(5, 3), [MASK], chosen(5, 3)),
    (aten.index_put.default, some(2, 3, 4), [TWO_MASK], chosen(6, 4, choice=TWO)),
    (aten.index_put.default, some(5, 3), [PLACES], chosen(5, 3)),
    (aten.masked_scatter.default, some(2, 3), TWO_MASK, chosen(6, choice=TWO)),
    (aten.cat.default, [chosen(5, 3), some(2, 3)]),
    (aten.cat.default, [some(2, 3), chosen(2, 5, dim=1), chosen(2, 5, dim=1, choice=OTHER)], -1),
    (aten.split.Tensor, chosen(5, 3), 2, 1),
    (aten.split_with_sizes.default, chosen(2, 5, 3, dim=1), [1, 2], -1),
    (aten.chunk.default, chosen(5, 4), 2, 1),
    (aten.linalg_vector_norm.default, chosen(5, 3), 1, [0], True),
    (aten.clone.default, chosen(5, 3)),
    (aten.to.dtype, chosen(5, 3), torch.float64),
    (aten.zeros_like.default, chosen(5, 3)),
    (aten.full_like.default, chosen(5, 3), 2),
    (aten.softplus.default, chosen(5, 3)),
    (aten.nonzero.default, torch.tensor([[0, 2, 0], [-1, 0, 3]])),
    (aten.nonzero_numpy.default, TWO_MASK),
    (aten.where.default, MASK),
    (aten.arange.default, COUNT, {"dtype": torch.float32}),
    (aten.full.default, [COUNT], 3, {"dtype": torch.int32}),
    (aten.sum.dim_IntList, chosen(5, 3), [0], {"dtype": torch.float64}),
    (aten.mean.default, MIXED, {"dtype": torch.float32}),
    (aten.var.correction, chosen(2, 5, 3, dim=1), [1, 2], {"correction": 0}),
    (aten.std.correction, chosen(2, 5, dim=1), None, {"correction": None}),
    (aten.cumsum.default, MIXED, 0, {"dtype": torch.float32}),
    (attention, some(2, 3, 4), *(chosen(2, 5, 4, dim=1),) * 2, {"scale": 0.3}),
    (aten.index_add.default, some(5, 3), 0, MIXED, chosen(5, 3), {"alpha": 2}),
    (aten.linalg_vector_norm.default, chosen(5, 3), {"dtype": torch.float64}),
    (aten.add.Tensor, chosen(5, 2), some(2)),
    (aten.mul.Tensor, chosen(5, 2), chosen(5, 1)),
    (aten.div.Tensor, some(3), COUNT),
    (aten.where.self, Chosen(some(5) > 0, CHOICE, 0), chosen(5), some(1)),
]

LENGTHS: list[tuple[Any, ...]] = [
    (aten.nonzero.default, chosen(5)),
    (aten.unbind.int, chosen(5, 2)),
    (aten.index.Tensor, chosen(5, 2), [None, MASK[:2]]),
    (aten.index.Tensor, chosen(5), [torch.tensor([1])]),
    (aten.index_select.default, chosen(5, 2), 1, torch.tensor([1])),
    (aten.masked_select.default, chosen(5), MASK),
    (aten.slice.Tensor, chosen(5, 3), 0, 1),
    (aten.view.default, some(6), [COUNT, 2]),
    (aten.view.default, chosen(5, 4), [OTHERS, 4]),
    (aten.expand.default, chosen(5, 1), [OTHERS, 4]),
    (aten.zeros.default, [COUNT, COUNT]),
    (aten.full.default, [COUNT], COUNT),
    (aten.arange.default, Number(torch.tensor(3))),
    (aten.squeeze.dim, chosen(5, 1), 0),
    (aten.squeeze.dims, chosen(5, 1), [1, -2]),
    (aten.select.int, chosen(2, 5, dim=1), -1, 0),
    (aten.var.dim, chosen(5, 3), [1]),
    (aten.layer_norm.default, chosen(5, 4), [5, 4]),
    (aten.linear.default, some(3, 5), chosen(2, 5, dim=1)),
    (aten.embedding.default, chosen(5, 3), MIXED),
    (aten.matmul.default, chosen(3, 5, dim=1), some(5, 2)),
    (aten.matmul.default, some(3, 5), chosen(5, 2)),
    (attention, some(5, 4), chosen(5, 4), some(5, 4)),
    (attention, some(5, 4), some(5, 4), chosen(5, 4)),
    (aten.index_add.default, some(5, 3), 0, MIXED, some(5, 3)),
    (aten.index_put.default, chosen(5, 5), [MIXED], chosen(5, 5)),
    (aten.index_put.default, some(5, 5), [MIXED, MIXED], chosen(5)),
    (aten.masked_scatter.default, chosen(5), MASK, chosen(5)),
    (aten.cat.default, [chosen(5, 3), some(5, 2)], 1),
    (aten.split.Tensor, chosen(5, 3), 2),
    (aten.linalg_vector_norm.default, chosen(5, 3), 0),
    (aten.full_like.default, chosen(5, 3), COUNT),
    (aten.add.Tensor, chosen(5), some(2, 5)),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call[0]))
def test_rule_for_chosen_rows_equals_pytorch(call: tuple[Any, ...]) -> None:
    target, args, keywords = parted(call)
    expected = target(*taken(args), **keywords)
    expected = list(expected) if isinstance(expected, tuple) else expected

    torch.testing.assert_close(taken(ruled(target, *args, **keywords)), expected)


@pytest.mark.parametrize("call", LENGTHS, ids=lambda call: str(call[0]))
def test_rule_that_needs_a_length_refuses(call: tuple[Any, ...]) -> None:
    target, args, keywords = parted(call)

    assert ruled(target, *args, **keywords) is None

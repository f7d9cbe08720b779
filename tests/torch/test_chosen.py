"""Lengths that data decide: rows that a mask chooses, slices whose end is a number of data."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from fabric import ProgramError, simulate
from operators.torch import from_torch
from tests.profiles import spread
from tests.torch.test_capture import Computing

ROWS, COLS = 12, 8

WEIGHT = torch.randn(COLS, COLS, generator=torch.Generator().manual_seed(0))


def linear(x: Any) -> Any:
    """Multiply rows with weights."""
    return nn.functional.linear(x, WEIGHT.to(x.dtype))


def positive(x: Any) -> Any:
    """Return which rows are chosen."""
    return x[:, 0] > 0


def first(x: Any) -> Any:
    """Return as many rows from the first one on as there are positive ones."""
    count = positive(x).sum().item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count]


def put_back(x: Any) -> Any:
    """Replace the chosen rows."""
    mask = positive(x)
    y = x.clone()
    y[mask] = linear(x[mask])
    return y


def added_back(x: Any) -> Any:
    """Add to the chosen rows what is made of them, as an expert does."""
    places = positive(x).nonzero().squeeze(-1)
    return x.index_add(0, places, linear(x[places]) * 2)


def attended(x: Any) -> Any:
    """Attend to the chosen rows only."""
    rows = x[positive(x)]
    return nn.functional.scaled_dot_product_attention(x[None], rows[None], (rows * 2)[None])


def stepped(x: Any) -> Any:
    """Number the rows that are chosen."""
    rows = x[positive(x)]
    return (rows * torch.arange(rows.shape[0])[:, None]).sum(0)


def squares(x: Any) -> Any:
    """Multiply the chosen rows with one another."""
    rows = x[positive(x)]
    return rows.T @ (rows + 1)


def headed(x: Any) -> Any:
    """Split the chosen rows into heads."""
    rows = linear(x[positive(x)])
    return rows.view(rows.shape[0], 2, COLS // 2).transpose(0, 1).amax(1)


def between(x: Any) -> Any:
    """Take a part from the middle."""
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
}


@pytest.mark.parametrize("name", spread(CHOOSING, 8))
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.deep)]
)
def test_what_data_choose(name: str, dtype: torch.dtype) -> None:
    """It is what PyTorch computes, for one program with some rows chosen, and with all."""
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
    """Lengths that they decide are numbers, with any end."""
    torch.manual_seed(2)
    function, argument = KNOWN[name]
    known = {"mask": torch.rand(ROWS) > 0.5, "counts": torch.randint(1, 4, (ROWS,))}[argument]
    given = torch.randn(ROWS, COLS), known

    assert simulate(from_torch(Computing(function), given), mode="functional").verified


def test_known_choices_beside_symbols() -> None:
    """A mask is that of these arguments, not that of those a kept trace was made with."""
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
    """The call that chooses is refused, with the one that has to know how many were chosen."""
    function, message = NEEDING[name]
    with pytest.raises(ProgramError, match=f"data decide the size of its result, .*{message}"):
        from_torch(Computing(function), (torch.randn(ROWS, COLS),))


def test_in_timing_mode() -> None:
    """All rows are loaded and computed, however many are chosen: cycles tell nothing of data."""
    module = Computing(lambda x: x.index_add(0, (at := positive(x).nonzero()[:, 0]), x[at] * 2))
    x = torch.randn(ROWS, COLS)

    cycles = {simulate(from_torch(module, (each,))).cycles for each in (x, x - 3, x.to("meta"))}

    assert len(cycles) == 1

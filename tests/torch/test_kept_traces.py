# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from fabric import ProgramError, simulate
from operators.torch import from_torch

pytestmark = pytest.mark.filterwarnings("ignore:var.*degrees of freedom")

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "attention": lambda: nn.MultiheadAttention(6, 2),
    "conv": lambda: nn.Conv1d(6, 6, 3, padding=1),
    "gru": lambda: nn.GRU(6, 6),
    "linear": lambda: nn.Linear(6, 6),
    "norm": lambda: nn.LayerNorm(6),
}


class Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(40, 6))
        self.register_buffer("table", torch.randn(5, 6), persistent=False)
        for name in LAYERS.keys() & function.__code__.co_names:
            self.add_module(name, LAYERS[name]())

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def row_loop(_: Any, x: Any) -> Any:
    state = x[0] * 0
    for row in x:
        state = torch.tanh(state + row)
    return state


def column_loop(_: Any, x: Any) -> Any:
    x, state, states = torch.cat([x, x], 1), torch.zeros_like(x[:, 0]), []
    for column in range(12):
        state = torch.tanh(x[:, column] + state)
        states.append(state)
    return torch.stack(states, 1)


def layer_loop(m: Any, x: Any) -> Any:
    state = x
    for _ in range(9):
        state = torch.tanh(m.linear(state) + x)
    return state


def attention(_: Any, x: Any, mask: Any = None, *, causal: bool = False) -> Any:
    x = x[None, None]
    return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=causal)[0, 0]


def places(x: Any) -> Any:
    return torch.arange(x.shape[0])


def before(x: Any) -> Any:
    return places(x)[:, None] >= places(x)


def columns(x: Any) -> Any:
    return x.t()[None]


KINDS: dict[str, Callable[..., Any]] = {
    "loop over rows": row_loop,
    "loop over columns": column_loop,
    "add the length": lambda _, x: x + len(x),
    "string": lambda _, x: x * (2 if str(x.shape[0]) == "5" else 3),
    "dictionary": lambda _, x: x * {2: 5.0, 3: 6.0}.get(x.shape[0], 7.0),
    "windows": lambda _, x: x.unfold(0, 2, 1).sum(-1),
    "pool to one": lambda _, x: functional.avg_pool1d(columns(x), x.shape[0])[0],
    "causal mask": lambda m, x: attention(m, x, before(x)),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "index columns": lambda _, x: x[:, 1:3] + x[:, :1],
    "branch": lambda m, x: m.linear(x) if x.shape[0] > 4 else x * 2,
    "loop over layers": layer_loop,
    "list of rows": lambda _, x: torch.stack([x[: i + 1].mean(0) for i in range(x.shape[0])]),
    "layer of each row": lambda m, x: torch.stack([*map(m.linear, x)]),
    "power": lambda _, x: (x @ x.t()) * x.shape[0] ** -0.5,
    "rows to the root": lambda _, x: x[: int(math.sqrt(x.shape[0]))],
    "tensor of the length": lambda _, x: x / torch.tensor(float(x.shape[0])).sqrt(),
    "even": lambda _, x: x.view(-1, 2, 6).sum(1) if x.shape[0] % 2 == 0 else x,
    "half": lambda _, x: x[: x.shape[0] // 2 * 2].view(x.shape[0] // 2, 2, 6).sum(1),
    "transposed": lambda _, x: x.t().reshape(x.shape),
    "positions": lambda m, x: x + m.weight[: x.shape[0]],
    "relative": lambda m, x: x @ x.t() + m.weight[places(x)[:, None] - places(x) + 20, 0],
    "fixed table": lambda m, x: x + m.table,
    "arange": lambda _, x: x + torch.arange(x.shape[0])[:, None] / x.shape[0],
    "pad": lambda _, x: functional.pad(x, (0, 0, 1, 2)),
    "pad to a multiple": lambda _, x: (
        functional.pad(x, (0, 0, 0, -x.shape[0] % 4)).view(-1, 4, 6).sum(1)
    ),
    "chunk": lambda _, x: torch.stack([part.sum(0) for part in x.chunk(3)]),
    "split": lambda _, x: torch.stack([part.sum(0) for part in x.split(2)]),
    "additive mask": lambda m, x: attention(m, x, before(x).float().log()),
    "causal": lambda m, x: attention(m, x, causal=True),
    "sliding mask": lambda m, x: attention(m, x, before(x) & ~before(x).tril(-3)),
    "heads": lambda m, x: m.attention(x, x, x, need_weights=False)[0],
    "with itself": lambda _, x: torch.cat([x, x]),
    "repeat": lambda _, x: x[:1].repeat(x.shape[0], 1) + x,
    "interpolate": lambda _, x: functional.interpolate(columns(x), scale_factor=2.0)[0],
    "running sum": lambda _, x: x.cumsum(0),
    "one-hot": lambda _, x: functional.one_hot(places(x) % 3, 6) * x,
    "triangle": lambda _, x: torch.triu(torch.ones(x.shape[0], x.shape[0])) @ x,
    "scatter": lambda _, x: torch.zeros_like(x).index_add(0, places(x) // 2, x),
    "norm": lambda _, x: functional.layer_norm(x, x.shape),
    "norm of rows": lambda m, x: m.norm(x),
    "largest rows": lambda _, x: x.topk(x.shape[0] // 2 + 1, 0).values,
    "convolution": lambda m, x: m.conv(columns(x))[0],
    "pool": lambda _, x: functional.max_pool1d(columns(x), 2, ceil_mode=True)[0],
    "recurrence": lambda m, x: m.gru(x)[0],
    "recurrence of rows": lambda m, x: m.gru(x[None].expand(9, -1, -1))[0],
    "first five": lambda _, x: x[:5],
    "length as a result": lambda _, x: (x * 2, x.shape[0]),
}
PAIRS: dict[str, Callable[..., Any]] = {
    "pair added": lambda _, x, y: x + y,
    "pair joined": lambda _, x, y: torch.cat([x, y]),
    "pair compared": lambda _, x, y: x * 2 if x.shape[0] == y.shape[0] else torch.cat([y, x]),
    "pair multiplied": lambda _, x, y: x @ y.t() / y.shape[0],
    "pair of loops": lambda _, x, y: torch.stack([row + y.sum(0) for row in x]),
}
SYMBOLS: dict[str, Callable[[str], object]] = {
    "auto": lambda _: Dim.AUTO,
    "named": lambda name: Dim(name, min=2),
    "dynamic": lambda _: Dim.DYNAMIC,
}


def outcome(module: nn.Module, given: Any, **options: Any) -> tuple[Any, ...]:
    try:
        program = from_torch(module, given, **options)
    except ProgramError:
        return ()
    assert simulate(program, mode="functional").verified
    return [each.name for each in program.nodes], simulate(program, mode="timing").cycles


def check(kind: str, symbols: str, lengths: Any) -> None:
    torch.manual_seed(0)
    module = Module({**KINDS, **OTHERS, **PAIRS}[kind]).eval()
    for length in lengths:
        given = tuple(torch.randn(each, 6) for each in length)
        try:
            module(*given)
        except (RuntimeError, IndexError):
            continue  # PyTorch refuses the length
        dims = tuple({0: SYMBOLS[symbols](name)} for name in "ab"[: len(given)])
        fresh = outcome(module, given)
        kept = outcome(module, given, dynamic_shapes=(dims,))
        assert kept == fresh, f"{kind} with lengths {length} of {lengths}"


def rows(*lengths: int) -> list[tuple[int]]:
    return [(each,) for each in lengths]


@pytest.mark.parametrize("kind", KINDS)
def test_kept_trace_of_another_length_equals_a_fresh_import(kind: str) -> None:
    check(kind, "auto", rows(5, 9, 1))


def test_two_lengths_that_are_equal_or_not_equal_fresh_imports() -> None:
    check("pair compared", "auto", [(5, 5), (3, 3), (6, 4)])


def test_a_loop_over_empty_tensors_is_refused_by_name() -> None:
    check("loop over layers", "auto", rows(0))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "symbols"), [*product([*KINDS, *OTHERS], SYMBOLS)])
def test_kept_traces_of_every_kind_equal_fresh_imports(kind: str, symbols: str) -> None:
    check(kind, symbols, rows(5, 9, 3, 2, 1, 0, 8))
    check(kind, symbols, rows(2, 12))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "symbols"), [*product(PAIRS, SYMBOLS)])
def test_kept_traces_of_pairs_equal_fresh_imports(kind: str, symbols: str) -> None:
    check(kind, symbols, [(5, 5), (3, 3), (6, 4), (4, 6), (1, 5), (9, 9), (9, 2)])

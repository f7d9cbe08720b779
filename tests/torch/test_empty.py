from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from fabric import ProgramError, simulate
from operators.torch import from_torch
from tests.profiles import spread
from tests.torch.test_capture import Computing

X = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
NONE = torch.zeros(5, dtype=torch.bool)
MASK = torch.tensor([True, False, True, True, False])
IDS = torch.tensor([1, 2, 3, 2])


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = torch.where(choice == number)[0]
            y = y.index_add(0, rows, expert(x[rows]))
        return y


class Skipping(Routed):
    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = torch.where(choice == number)[0]
            if rows.numel():
                y = y.index_add(0, rows, expert(x[rows]))
        return y


def split_by_counts(x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(choice, minlength=3).tolist()
    return torch.cat([part * scale for scale, part in enumerate(x.split(counts))])


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[mask] = x[mask] * 2
    return y


def chosen_by_a_constant(x: torch.Tensor) -> torch.Tensor:
    rows = torch.nonzero(MASK).squeeze(1)
    return torch.zeros(5, 6).index_add(0, rows, torch.tanh(x[MASK]))


def bags(mode: str, **options: Any) -> nn.Module:
    return Computing(
        lambda w, ids, starts: functional.embedding_bag(ids, w, starts, mode=mode, **options)
    )


CASES: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "LSTM, one step": (nn.LSTM(6, 5), (X[None], (torch.ones(1, 5, 5), torch.ones(1, 5, 5)))),
    "GRU, one step": (nn.GRU(6, 5, bidirectional=True, num_layers=2), (X[None],)),
    "RNN, one step": (nn.RNN(6, 5), (X[:1],)),
    "expert without tokens": (Routed(), (X, torch.tensor([0, 1, 1, 0, 1]))),
    "sum": (Computing(lambda x: x[:0].sum(0)), (X,)),
    "mean": (Computing(lambda x, m: x[m].mean()), (X, NONE)),
    "product": (Computing(lambda x: x[:0].T @ x[:0]), (X,)),
    "sum with a product": (Computing(lambda x: torch.addmm(x, x[:, :0], x[:0])), (X,)),
    "cat": (Computing(lambda x: torch.cat([x[:0] @ torch.ones(6, 6), x])), (X,)),
    "split": (Computing(lambda x: torch.cat(torch.split(x, [2, 0, 3]))), (X,)),
    "mask without True": (Computing(masked), (X, NONE)),
    "mask of the module": (Computing(chosen_by_a_constant), (X,)),
    "routing that skips experts": (Skipping(), (X, torch.tensor([0, 1, 1, 0, 1]))),
    "logarithm of chosen rows": (Computing(lambda x, m: x[m].logsumexp(0)), (X, MASK)),
    "split by counts": (Computing(split_by_counts), (X, torch.tensor([0, 1, 1, 0, 1]))),
    "scatter": (Computing(lambda x: x.scatter_add(0, IDS[:0, None].expand(0, 6), x)), (X,)),
    "input": (Computing(lambda x, e: torch.cat([x, torch.tanh(e)])), (X, X[:0])),
    "sum of empty bags": (bags("sum"), (X, IDS, torch.tensor([0, 2, 2]))),
    "mean of padding": (bags("mean", padding_idx=2), (X, IDS, torch.tensor([0, 1, 2]))),
    "largest of empty bags": (bags("max"), (X, IDS, torch.tensor([0, 0, 4]))),
    "bags without rows": (bags("sum"), (X, IDS[:0], torch.tensor([0, 0]))),
}


@pytest.mark.parametrize("name", spread(CASES, 9))
def test_imports_with_nothing_to_compute_equal_pytorch(name: str) -> None:
    module, given = CASES[name]
    program = from_torch(module.eval(), given)
    report = simulate(program, mode="functional")
    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles


class OfThisFile(Computing):
    pass


def test_errors_inside_pytorch_name_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    place = chosen_by_a_constant.__code__

    def fails(*_: object) -> None:
        raise RuntimeError(f'u2 -> u0\n\nFile "{place.co_filename}", line {place.co_firstlineno}')

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", fails)
    with pytest.raises(ProgramError) as caught:
        from_torch(OfThisFile(torch.tanh).eval(), (X,))
    assert str(caught.value.message) == (
        "torch.export cannot trace OfThisFile for these arguments at test_empty.py:"
        f"{place.co_firstlineno}, `def chosen_by_a_constant(x: torch.Tensor) -> torch.Tensor:`: "
        "RuntimeError: u2 -> u0"
    )

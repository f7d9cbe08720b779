"""Lengths that stay symbols: one trace, and a program for every length that is asked for."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from fabric import ProgramError, simulate
from operators.torch import from_torch


class Decoding(nn.Module):
    """Attention of new tokens to a cache and to one another, and positions."""

    def __init__(self) -> None:
        """Draw weights of 16 columns and 2 heads."""
        super().__init__()
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Any, cache: Any) -> Any:
        """Return [batch, tokens, 16]: of x, of that shape, and a cache [2, batch, context, 16]."""
        tokens, context = x.shape[1], cache.shape[2]
        q, k, v = self.project(x).chunk(3, -1)
        k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        heads = [each.unflatten(-1, (2, 8)).transpose(1, 2) for each in (q, k, v)]
        before = torch.arange(context + tokens) <= context + torch.arange(tokens)[:, None]
        y = nn.functional.scaled_dot_product_attention(*heads, attn_mask=before)
        return self.out(y.transpose(1, 2).flatten(2)) + torch.arange(tokens)[:, None]


class Conditional(nn.Module):
    """What it does depends on its length."""

    def forward(self, x: Any) -> Any:
        """Add 1 to many rows, 2 to few."""
        return x + (1 if x.shape[0] > 8 else 2)


@pytest.fixture(name="traces")
def _traces(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each trace that is made."""
    found: list[None] = []
    export = torch.export.export

    def counted(*args: Any, **kwargs: Any) -> Any:
        found.append(None)
        return export(*args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    return found


SYMBOLS = {"x": {1: Dim("tokens")}, "cache": {2: Dim("context")}}


def test_one_trace(traces: list[None]) -> None:
    """Programs of all lengths are those of an import of their own, and PyTorch's numbers."""
    torch.manual_seed(0)
    module = Decoding().eval()
    for tokens, context in ((5, 7), (3, 40), (16, 2), (2, 3)):
        given = torch.randn(2, tokens, 16), torch.randn(2, 2, context, 16)
        program = from_torch(module, given, dynamic_shapes=SYMBOLS)
        count = len(traces)

        report = simulate(program, mode="functional")

        assert report.verified
        assert count == 1
        alone = from_torch(module, given)
        assert [each.name for each in alone.nodes] == [each.name for each in program.nodes]
        assert simulate(alone).cycles == report.cycles
        del traces[1:]


def test_a_length_of_one(traces: list[None]) -> None:
    """PyTorch keeps 1 apart: it is traced for itself, and leaves the other trace alone."""
    module = Decoding().eval()
    given = [(torch.randn(1, tokens, 16), torch.randn(2, 1, 4, 16)) for tokens in (3, 1, 6)]

    programs = [from_torch(module, each, dynamic_shapes=SYMBOLS) for each in given]

    assert all(simulate(each, mode="functional").verified for each in programs)
    assert len(traces) == 3  # the second one twice: with a symbol, and without


def test_what_depends_on_the_length(traces: list[None]) -> None:
    """Where a length does not fulfil what the trace was made for, there is a new one."""
    module = Conditional()
    tokens = {"x": {0: Dim.AUTO}}
    for length in (3, 5, 9, 12):
        program = from_torch(module, (torch.randn(length, 4),), dynamic_shapes=tokens)
        assert simulate(program, mode="functional").verified
    assert len(traces) == 2


def test_other_weights(traces: list[None]) -> None:
    """A weight that is written to is the same one; another tensor makes a new trace."""
    module = nn.Linear(4, 4)

    def is_right() -> bool:
        rows = ({0: Dim("rows")},)
        program = from_torch(module, (torch.randn(3, 4),), dynamic_shapes=rows)
        return bool(simulate(program, mode="functional").verified)

    assert is_right()
    module.weight.data.add_(1)
    assert is_right()
    assert len(traces) == 1
    module.bias = nn.Parameter(torch.randn(4))
    assert is_right()
    assert len(traces) == 2


def test_a_length_that_is_no_symbol() -> None:
    """What PyTorch says of a length that the module decides is told."""
    with pytest.raises(ProgramError, match=r"cannot trace Sequential .* specialized it to be"):
        from_torch(
            nn.Sequential(nn.Flatten(), nn.Linear(12, 2)),
            (torch.randn(2, 3, 4),),
            dynamic_shapes=({1: Dim("rows")},),
        )

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
    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Any, cache: Any) -> Any:
        tokens, context = x.shape[1], cache.shape[2]
        q, k, v = self.project(x).chunk(3, -1)
        k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        heads = [each.unflatten(-1, (2, 8)).transpose(1, 2) for each in (q, k, v)]
        before = torch.arange(context + tokens) <= context + torch.arange(tokens)[:, None]
        y = nn.functional.scaled_dot_product_attention(*heads, attn_mask=before)
        return self.out(y.transpose(1, 2).flatten(2)) + torch.arange(tokens)[:, None]


class Conditional(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + (1 if x.shape[0] > 8 else 2)


@pytest.fixture(name="traces")
def _traces(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    found: list[None] = []
    export = torch.export.export

    def counted(*args: Any, **kwargs: Any) -> Any:
        found.append(None)
        return export(*args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    return found


SYMBOLS = {"x": {1: Dim("tokens")}, "cache": {2: Dim("context")}}


def test_one_trace_serves_all_lengths(traces: list[None]) -> None:
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


def test_length_of_one_is_traced_without_symbols(traces: list[None]) -> None:
    module = Decoding().eval()
    given = [(torch.randn(1, tokens, 16), torch.randn(2, 1, 4, 16)) for tokens in (3, 1, 6)]

    programs = [from_torch(module, each, dynamic_shapes=SYMBOLS) for each in given]

    assert all(simulate(each, mode="functional").verified for each in programs)
    assert len(traces) == 3  # the second one twice: with a symbol, and without


def test_branches_on_a_length_are_traced_once_each(traces: list[None]) -> None:
    module = Conditional()
    tokens = {"x": {0: Dim.AUTO}}
    for length in (3, 5, 9, 12):
        program = from_torch(module, (torch.randn(length, 4),), dynamic_shapes=tokens)
        assert simulate(program, mode="functional").verified
    assert len(traces) == 2


def test_changed_weights_share_a_trace_and_new_ones_do_not(traces: list[None]) -> None:
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


def test_length_that_the_module_needs_as_a_number_is_traced_for_itself() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    program = from_torch(module, (torch.randn(2, 3, 4),), dynamic_shapes=({1: Dim("rows")},))
    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": {0: Dim("rows", max=4)}}, r"5 not in range \[2, 4\]"),
        ({"z": {0: Dim("rows")}}, r"must be the arg names \['x'\]"),
    ],
)
def test_lengths_that_contradict_dynamic_shapes_are_refused(shapes: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        from_torch(Conditional(), (torch.randn(5, 4),), dynamic_shapes=shapes)


def test_replaced_buffer_makes_a_new_trace(traces: list[None]) -> None:
    module = Conditional()
    module.register_buffer("table", torch.randn(4), persistent=False)
    for _ in range(2):
        module.table = torch.randn(4)
        from_torch(module, (torch.randn(3, 4),), dynamic_shapes={"x": {0: Dim.AUTO}})
    assert len(traces) == 2

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
from operators.torch.lengths import at_lengths, kept_trace


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


def test_one_trace(traces: list[None]) -> None:
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
    module = Decoding().eval()
    given = [(torch.randn(1, tokens, 16), torch.randn(2, 1, 4, 16)) for tokens in (3, 1, 6)]

    programs = [from_torch(module, each, dynamic_shapes=SYMBOLS) for each in given]

    assert all(simulate(each, mode="functional").verified for each in programs)
    assert len(traces) == 3  # the second one twice: with a symbol, and without


def test_what_depends_on_the_length(traces: list[None]) -> None:
    module = Conditional()
    tokens = {"x": {0: Dim.AUTO}}
    for length in (3, 5, 9, 12):
        program = from_torch(module, (torch.randn(length, 4),), dynamic_shapes=tokens)
        assert simulate(program, mode="functional").verified
    assert len(traces) == 2


def test_other_weights(traces: list[None]) -> None:
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


class Scaled(nn.Module):
    def forward(self, x: Any, number: Any, y: Any) -> Any:
        return x * (2 if self.training else 1) * number + y[:1]


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({}, False),
        ({"x": torch.randn(9, 4)}, False),
        ({"x": torch.randn(4, 9).t()}, True),
        ({"number": 3}, True),
        ({"number": None}, True),
        ({"x": torch.randn(5, 4).bfloat16(), "y": torch.randn(3, 4).bfloat16()}, True),
        ({"y": torch.randn(7, 4)}, True),
        ({"y": torch.randn(3, 1)}, True),
        ({"number": torch.tensor(2.0)}, True),
        ({"number": torch.ones(4)}, True),
        ({"number": 2.0}, True),
        ({"training": True}, True),
        ({"dynamic_shapes": {"x": {0: Dim.AUTO}, "number": None, "y": None}}, True),
        ({"dynamic_shapes": {"x": {0: Dim("other")}, "number": None, "y": None}}, True),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, dict) else str(each),
)
def test_what_a_trace_serves(changed: dict[str, Any], again: bool) -> None:
    its = {"x": torch.randn(5, 4), "number": 2, "y": torch.randn(3, 4), "training": False}
    its["dynamic_shapes"] = {"x": {0: Dim("rows")}, "number": None, "y": None}
    module = Scaled()
    made: list[None] = []

    def kept(x: Any, number: Any, y: Any, dynamic_shapes: Any, training: bool) -> Any:
        module.train(training)
        leaves, structure = torch.utils._pytree.tree_flatten(((x, number, y), {}))

        def trace() -> Any:
            made.append(None)
            given = x, 2 if number is None else number, y
            return torch.export.export(module, given, dynamic_shapes=dynamic_shapes, strict=False)

        return kept_trace(module, leaves, structure, dynamic_shapes, trace), leaves

    first, _ = kept(**its)
    its |= changed
    found, leaves = kept(**its)
    assert (found is not first) == again
    assert len(made) == 1 + again
    if its["number"] is not None:
        graph = at_lengths(found, leaves)
        (output,) = (node for node in graph.nodes if node.op == "output")
        assert output.args[0][0].meta["val"].shape == its["x"].shape
        names = [each.name for each in graph.nodes]
        assert not any(name.startswith("sym_size") for name in names)


def test_a_trace_without_symbols_is_not_kept() -> None:
    module = nn.Linear(4, 4)
    x = torch.randn(3, 4)

    def trace() -> Any:
        return torch.export.export(module, (x,), strict=False)

    for _ in range(2):
        assert kept_trace(module, [x], None, None, trace) is None


def test_a_trace_at_other_lengths() -> None:
    class Long(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.ones(4, 4))

        def forward(self, x: Any) -> Any:
            y = torch.cat([x, self.rows])
            return y.reshape(-1) + torch.arange(y.shape[0] * 4, device=y.device), x.shape[0]

    module = Long().to("meta")
    shapes = ({0: Dim("rows")},)
    x = torch.randn(5, 4, device="meta")
    exported = torch.export.export(module, (x,), dynamic_shapes=shapes, strict=False)
    graph = at_lengths(exported, [torch.randn(7, 4)])

    its = {node.name: node for node in graph.nodes if node.op == "call_function"}
    assert {name: tuple(node.meta["val"].shape) for name, node in its.items()} == {
        "cat": (11, 4),
        "reshape": (44,),
        "arange": (44,),
        "add_1" if "add_1" in its else "add": (44,),
    }
    assert its["arange"].args[0] == 44
    assert its["cat"].meta["val"].device.type == "meta"
    (output,) = (node for node in graph.nodes if node.op == "output")
    assert output.args[0][1] == 7
    assert [node.name for node in graph.nodes if node.op == "placeholder"] == ["b_rows", "x"]


def test_weights_without_numbers(traces: list[None]) -> None:
    module = nn.Linear(4, 4, device="meta")
    for rows in (3, 5):
        program = from_torch(module, (torch.randn(rows, 4),), dynamic_shapes=({0: Dim("rows")},))
        assert [each.shape for each in simulate(program).outputs.values()] == [(rows, 4)]
    assert len(traces) == 1

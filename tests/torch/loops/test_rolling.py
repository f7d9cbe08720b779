# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.fx import GraphModule

from fabric import Program, ProgramError, simulate
from operators.torch import Schedule, from_torch
from operators.torch.loops.rolling import Rolled
from tests.profiles import spread


def cells(self: Any, x: Any) -> Any:
    h = c = x.new_zeros(len(x), 4)
    given = []
    for t in range(x.shape[1]):
        h, c = self.cell(x[:, t], (h, c))
        given.append(self.layer(h))
    return torch.stack(given, 1), h


def gated(self: Any, x: Any) -> Any:
    h = x[:, 0] * 0
    for u in x.unbind(1):
        h = self.gated(u, h)
    return h


def selective(self: Any, x: Any) -> Any:
    decay, into = torch.sigmoid(self.layer(x)), self.other(x)
    h, given = x.new_zeros(len(x), 4, 4), []
    for t in range(x.shape[1]):
        h = decay[:, t, :, None] * h + x[:, t, :, None] * into[:, t, None]
        given.append((h * into[:, t, None]).sum(-1))
    return torch.stack(given, 1)


def backwards(self: Any, x: Any) -> Any:
    h, given = x[:, 0], []
    for t in reversed(range(x.shape[1])):
        h = 0.5 * h + self.layer(x[:, t])
        given.append(h)
    return torch.stack(given[::-1], 1)


def to_a_fixed_point(self: Any, x: Any) -> Any:
    z = torch.zeros_like(x)
    for _ in range(x.shape[1]):
        z = torch.tanh(self.layer(z) + x)
    return z


def scanned(self: Any, x: Any) -> Any:
    def step(h: Any, u: Any) -> Any:
        h = torch.tanh(self.layer(h) + u)
        return h, h * 2

    return scan(step, x.new_zeros(len(x), 4), x.transpose(0, 1))


def counted(self: Any, x: Any) -> Any:
    del self
    steps, first = x.shape[1], x[:, 0] + 0
    return while_loop(
        lambda i, _: i < steps, lambda i, y: (i + 1, torch.sin(y) + 1), (torch.tensor(0), first)
    )[1]


def counted_down_by_three(self: Any, x: Any) -> Any:
    del self
    first, steps = x[:, 0] + 0, torch.tensor(3 * x.shape[1])
    return while_loop(lambda i, _: i > 0, lambda i, y: (i - 3, torch.sin(y) * i), (steps, first))[1]


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    each.__name__: each
    for each in (cells, gated, selective, backwards, to_a_fixed_point,
                 scanned, counted, counted_down_by_three)
}  # fmt: skip


class Looping(nn.Module):
    def __init__(self, loop: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.loop = loop
        self.cell, self.gated = nn.LSTMCell(4, 4), nn.GRUCell(4, 4)
        self.layer, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.loop(self, x)


def imported(name: str, steps: int, schedule: Schedule | None = None) -> Program:
    torch.manual_seed(0)
    module = Looping(LOOPS[name]).eval()
    return from_torch(module, (torch.randn(3, steps, 4),), schedule=schedule)


def goes_round(program: Program) -> bool:
    return any("states" in each.name for each in program.nodes)


def assert_right(program: Program) -> None:
    report = simulate(program, mode="functional")
    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles


@pytest.mark.parametrize("name", spread(LOOPS, 3))
def test_rolled_loop_has_the_same_units_for_more_steps(name: str) -> None:
    few, many = imported(name, 8), imported(name, 20)

    assert goes_round(many)
    assert_right(few)
    assert_right(many)
    assert abs(len(many.nodes) - len(few.nodes)) <= 6


@pytest.mark.deep
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(tile_rows=2, tile_cols=2, tile_inner=2, order="output"),
        Schedule(tile_rows=64, order="row"),
        Schedule(on_chip_bytes=20_000),
    ],
    ids=["sums stay", "rows stay", "little on chip"],
)
def test_rolled_loop_is_verified_for_every_schedule(name: str, schedule: Schedule) -> None:
    assert_right(imported(name, 9, schedule))


def traced(function: Callable[[Any, Any], Any], *given: Any) -> GraphModule:
    torch.manual_seed(0)
    return torch.export.export(Looping(function).eval(), given, strict=False).module()


def from_the_last(self: Any, x: Any) -> Any:
    del self
    h, given = x[:, 0], []
    for t in range(9):
        h = torch.sin(h - x[:, -1 - t])
        given.append(h)
    return torch.stack(given[::-1]), h


def behind_one_another(self: Any, x: Any) -> Any:
    del self
    h = x[:, 8] + 1
    for t in range(8):
        h = torch.sin(h * x[:, t])
    for t in range(8):
        h = torch.cos(x[:, 2 + t] - h)
    return h


def beside_one_another(self: Any, x: Any) -> Any:
    h = c = x.new_zeros(3, 4)
    given = []
    for t in range(9):
        u = self.layer(x[:, t])
        h, c = torch.tanh(u - c), c + u * h
        given.append(c)
    return torch.stack(given, -1), h


def parts_of_the_first(self: Any, x: Any) -> Any:
    del self
    h = x[0] * 2
    for u in x.unbind():
        h = torch.tanh(h + u) * u
    return h


def alike_in_all_steps(self: Any, x: Any) -> Any:
    h, given = x[:, 0], []
    for _ in range(9):
        w = torch.sin(self.layer.weight)
        v = w * 2
        h = torch.tanh(h @ v) + w[0]
        given.append(v)
    return torch.stack(given, 1), h


def chunks(self: Any, x: Any) -> Any:
    h = x[:, 0] - x[:, 1]
    for t in range(9):
        a, b = torch.split(h, 2, -1)
        c, d = torch.split(x[:, t], 2, -1)
        h = self.layer(torch.cat([b * c, a - d], -1))
    return h


def weights_that_move(self: Any, x: Any) -> Any:
    h = self.layer.weight
    for t in range(10):
        h = torch.nn.functional.linear(h, x[t]) + h
    return h


def test_linear_layer_of_all_steps_stays_one_call() -> None:
    x = torch.randn(3, 10, 4)
    rolled = torch.export.export(Rolled(traced(chunks, x)), (x,), strict=False)
    targets = [str(each.target) for each in rolled.graph.nodes]
    assert targets.count("aten.linear.default") == 1
    assert not any("mm" in each or "matmul" in each for each in targets)


def one_behind_another(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for step in range(1, 9):
        h = torch.sin(torch.cos(h) + x[:, step])
    for step in range(9, 17):
        h = torch.sin(h + x[:, step])
    return h


def one_too_few(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for t in range(1, 8):
        h = torch.tanh(h + x[:, t])
    return h


def other_tensors(self: Any, x: Any) -> Any:
    del self
    y, h = x * 2, x[:, 0]
    for t in range(9):
        h = torch.tanh(h + (x, y)[t % 2][:, t])
    return h


def of_two_sums(self: Any, x: Any) -> Any:
    del self
    h = g = x[:, 0]
    for t in range(12):
        h, g = torch.sin(g if t % 3 else h), torch.cos(h)
    return h + g


def begun_anew(self: Any, x: Any) -> Any:
    del self
    g = h = first = x[:, 0]
    for t in range(9):
        g, h = h, torch.sin(h if t < 8 else first)
    return h + g


ROLLED = [
    from_the_last, behind_one_another, beside_one_another, parts_of_the_first,
    alike_in_all_steps, weights_that_move, chunks, one_behind_another,
]  # fmt: skip
UNROLLED = [one_too_few, other_tensors, of_two_sums, begun_anew]
SHAPES: dict[Any, tuple[int, ...]] = {
    weights_that_move: (10, 4, 4),
    parts_of_the_first: (10, 3, 4),
    one_behind_another: (3, 17, 4),
}


@pytest.mark.parametrize(
    "function", spread([*ROLLED, *UNROLLED], 4), ids=lambda each: each.__name__
)
def test_rolled_steps_give_pytorchs_numbers(function: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(1)
    steps = 18 if function in UNROLLED else 9 if function is from_the_last else 10
    x = torch.randn(SHAPES.get(function, (3, steps, 4)))

    program = from_torch(Looping(function).eval(), (x,))

    assert_right(program)
    assert goes_round(program) == (function in ROLLED)


def ended_by_data(_: Any, x: Any) -> Any:
    return while_loop(
        lambda i, y: y.sum() < i, lambda i, y: (i + 1, y.exp()), (torch.tensor(0), x[0] + 0)
    )[1]


def count_changed_by_data(_: Any, x: Any) -> Any:
    return while_loop(
        lambda i, _: i < 9,
        lambda i, y: (i + 1 + (y.sum() > 0), torch.sin(y)),
        (torch.tensor(0), x[0] + 0),
    )[1]


@pytest.mark.parametrize("loop", [ended_by_data, count_changed_by_data])
def test_loop_whose_steps_data_decide_is_refused(loop: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(ProgramError, match="while_loop"):
        from_torch(Looping(loop).eval(), (torch.randn(3, 4, 4),))

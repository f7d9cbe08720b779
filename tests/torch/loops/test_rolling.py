"""Loops that were traced step by step, and PyTorch's own: one body, whatever number of steps."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from fabric import Program, simulate
from operators.torch import Schedule, from_torch
from operators.torch.loops import rolling
from operators.torch.loops.rolling import Rolled, has_loops, repeats_of
from tests.profiles import spread
from tests.torch.loops.rounds import Rounds


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


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    each.__name__: each
    for each in (cells, gated, selective, backwards, to_a_fixed_point, scanned, counted)
}


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
def test_units_do_not_grow(name: str) -> None:
    few, many = imported(name, 8), imported(name, 64)

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
def test_schedules(name: str, schedule: Schedule) -> None:
    assert_right(imported(name, 9, schedule))


class Unequal(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(10))

    def forward(self, x: Any) -> Any:
        h = x[:, 0]
        seen: list[Any] = []
        for t in range(10):
            match self.kind:
                case "other weights":
                    h = torch.tanh(self.layers[t](h))
                case "other places":
                    h = torch.tanh(h + x[:, t * t % 10])
                case "two steps back":
                    h = torch.tanh(h + (seen[-2] if t > 1 else h))
                case "the sum of all steps":
                    h = torch.tanh(h + x[:, t])
            seen.append(h)
        return sum(seen)


@pytest.mark.parametrize(
    "kind", ["other weights", "other places", "two steps back", "the sum of all steps"]
)
def test_steps_that_are_not_equal(kind: str) -> None:
    torch.manual_seed(0)

    program = from_torch(Unequal(kind).eval(), (torch.randn(3, 10, 4),))

    assert simulate(program, mode="functional").verified
    assert not goes_round(program)


def traced(function: Callable[[Any, Any], Any], *given: Any) -> GraphModule:
    torch.manual_seed(0)
    return torch.export.export(Looping(function).eval(), given, strict=False).module()


def first_is_wider(self: Any, x: Any) -> Any:
    del self
    h = x.new_zeros(1, 4)
    for t in range(9):
        h = torch.tanh(h + x[:, t])
    return h


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


def begun_by_one(self: Any, x: Any) -> Any:
    del self
    h = c = x[:, 0] + 0
    for t in range(9):
        p = h * c
        h, c = torch.sin(p + x[:, t]), torch.cos(p)
    return h - c


def parts(self: Any, x: Any) -> Any:
    del self
    us = x.unbind(1)
    h = us[0]
    for u in us[1:]:
        h = torch.tanh(h + u)
    return h


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


def sixteen(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for _ in range(16):
        h = torch.sin(h)
    return h


def besides_the_state(self: Any, x: Any) -> Any:
    del self
    h, given = x[:, 0], []
    for t in range(10):
        h = torch.tanh(h + x[:, t])
        given.append(h * 2)
    return torch.stack(given), given[-1]


def weights_that_move(self: Any, x: Any) -> Any:
    h = self.layer.weight
    for t in range(10):
        h = torch.nn.functional.linear(h, x[t]) + h
    return h


# Calls of a step, how many steps, what goes round, what moves on: dimension, first place, stride;
# what is stacked, and how much comes in from outside. States have the numbers of the calls that
# give them.
# give them.
FOUND: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
    "first is wider": (first_is_wider, [("tanh select add", 8, [2], [(1, 1, 1)], 0, 1)]),
    "from the last": (from_the_last, [("select sub sin", 9, [2], [(1, 8, -1)], 1, 1)]),
    "behind one another": (
        behind_one_another,
        [
            ("select mul sin", 8, [2], [(1, 0, 1)], 0, 1),
            ("select sub cos", 8, [2], [(1, 2, 1)], 0, 1),
        ],
    ),
    "beside one another": (
        beside_one_another,
        [("select linear sub tanh mul add", 9, [3, 5, 5], [(1, 0, 1)], 1, 1)],
    ),
    "begun by one": (begun_by_one, [("select add sin cos mul", 8, [4, 4], [(1, 0, 1)], 0, 1)]),
    "parts": (parts, [("add tanh", 9, [1], [(1, 1, 1)], 0, 1)]),
    "parts of the first": (parts_of_the_first, [("add tanh mul", 10, [2], [(0, 0, 1)], 0, 1)]),
    "alike in all steps": (
        alike_in_all_steps,
        [("sin mul matmul tanh select add", 9, [5], [], 1, 0)],
    ),
    "weights that move": (
        weights_that_move,
        [("select linear add", 10, [2, 2], [(0, 0, 1)], 0, 1)],
    ),
    "besides the state": (
        besides_the_state,
        [("select add tanh mul", 10, [2], [(1, 0, 1)], 1, 1)],
    ),
    "sixteen": (sixteen, [("sin", 16, [0], [], 0, 0)]),
    "chunks": (
        chunks,
        [
            (
                "split getitem getitem select split getitem getitem mul sub cat linear",
                9,
                [10],
                [(1, 0, 1)],
                0,
                2,
            )
        ],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_loops_that_are_found(name: str, rounds: Rounds) -> None:
    function, wanted = FOUND[name]
    torch.manual_seed(1)
    x = torch.randn(
        {"weights that move": (10, 4, 4), "parts of the first": (10, 3, 4)}.get(name, (3, 10, 4))
    )
    x = x[:, :9] if name == "from the last" else x
    module = traced(function, x)
    rolled = Rolled(module)

    with torch.no_grad():
        found = rounds.settled(lambda: rolled(x))
        expected = torch.utils._pytree.tree_leaves(module(x))

    torch.testing.assert_close(list(found), expected)
    seen = [
        (
            " ".join(str(each.name).rstrip("_0123456789") for each in repeat.steps[-1]),
            repeat.count,
            sorted(at for its in repeat.carried.values() for at in its.values()),
            [(each.dim, each.first, each.stride) for each in repeat.moving.values()],
            len(repeat.stacked),
            len(rounds.entered.get(number, [])),
        )
        for number, repeat in enumerate(rolled.repeats)
    ]
    assert seen == wanted
    assert rounds.loops == {
        number: (steps, len(set(states))) for number, (_, steps, states, *_) in enumerate(wanted)
    }
    assert has_loops(module.graph)


def test_linear_layers_of_all_steps() -> None:
    x = torch.randn(3, 10, 4)
    rolled = torch.export.export(Rolled(traced(chunks, x)), (x,), strict=False)
    targets = [str(each.target) for each in rolled.graph.nodes]
    assert targets.count("aten.linear.default") == 1
    assert not any("mm" in each or "matmul" in each for each in targets)


def one_too_few(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for t in range(1, 8):
        h = torch.tanh(h + x[:, t])
    return h


def every_second(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for t in range(0, 18, 2):
        h = torch.tanh(h + x[:, t])
    return h


def other_dimensions(self: Any, x: Any) -> Any:
    del self
    y = x[0] @ x[1].T
    h = y[0]
    for t in range(9):
        h = torch.tanh(h + y.select(t % 2, t))
    return h


def other_tensors(self: Any, x: Any) -> Any:
    del self
    y, h = x * 2, x[:, 0]
    for t in range(9):
        h = torch.tanh(h + (x, y)[t % 2][:, t])
    return h


def in_the_middle(self: Any, x: Any) -> Any:
    del self
    h, given = x[:, 0], []
    for t in range(9):
        h = torch.tanh(h + x[:, t])
        given.append(h)
    return h + given[4]


def some_are_joined(self: Any, x: Any) -> Any:
    del self
    h, given = x[:, 0], []
    for t in range(9):
        h = torch.tanh(h + x[:, t])
        given.append(h)
    return torch.stack([*given[:4], *given[5:]])


def of_integers(self: Any, x: Any) -> Any:
    del self
    h = (x[:, 0] > 0).int()
    for _ in range(9):
        h = h * 2 + 1
    return h


def without_a_state(self: Any, x: Any) -> Any:
    del self
    return torch.stack([torch.tanh(x[:, t]) for t in range(9)])


def parts_in_disorder(self: Any, x: Any) -> Any:
    del self
    h = x[:, 0]
    for u in x.unbind(1)[::-1]:
        h = torch.tanh(h + u)
    return h


def parts_of_two(self: Any, x: Any) -> Any:
    del self
    pairs, h = list(zip(x.unbind(1), (x * 2).unbind(1), strict=True)), x[:, 0]
    for t in range(18):
        h = torch.tanh(h + pairs[t][t % 2])
    return h


def other_parts(self: Any, x: Any) -> Any:
    del self
    h = x[:, :1]
    for u in x.split(1, 1):
        h = torch.tanh(h + u)
    return h


def two_steps_back(self: Any, x: Any) -> Any:
    del self
    before = h = x[:, 0]
    for _ in range(9):
        before, h = h, torch.tanh(h) + before
    return h


def of_two_sums(self: Any, x: Any) -> Any:
    del self
    h = g = x[:, 0]
    for t in range(12):
        h, g = torch.sin(g if t % 3 else h), torch.cos(h)
    return h + g


NONE: list[Callable[[Any, Any], Any]] = [
    one_too_few,
    every_second,
    other_dimensions,
    other_tensors,
    in_the_middle,
    some_are_joined,
    of_integers,
    without_a_state,
    parts_in_disorder,
    parts_of_two,
    other_parts,
    two_steps_back,
    of_two_sums,
]


@pytest.mark.parametrize("function", NONE, ids=lambda each: each.__name__)
def test_what_is_no_loop(function: Callable[[Any, Any], Any]) -> None:
    module = traced(function, torch.randn(3, 18, 4))

    assert not has_loops(module.graph)
    assert not Rolled(module).repeats


def test_loops_share_no_step(rounds: Rounds) -> None:
    def function(self: Any, x: Any) -> Any:
        del self
        h = x[:, 0]
        for step in range(1, 9):
            h = torch.sin(torch.cos(h) + x[:, step])
        for step in range(9, 17):
            h = torch.sin(h + x[:, step])
        return h

    x = torch.randn(3, 17, 4)
    module = traced(function, x)
    (repeat,) = repeats_of(module.graph)
    assert [len(step) for step in repeat.steps] == [4] * 8
    rolled = Rolled(module)
    with torch.no_grad():
        (found,) = rounds.settled(lambda: rolled(x))
        torch.testing.assert_close(found, function(None, x))


def of_graphs(target: Any, functions: Sequence[Any], *operands: Sequence[Any]) -> GraphModule:
    graph, held = Graph(), {}
    tensors = [each for some in operands for each in some]
    nodes = []
    for at, tensor in enumerate(tensors):
        known = isinstance(tensor, int | float | list)
        value = torch.tensor(tensor) if known else tensor
        if known:
            held[f"number_{at}"] = value
        kind = "get_attr" if known else "placeholder"
        made = graph.create_node(kind, f"number_{at}" if known else f"x_{at}")
        made.meta["val"] = value
        if known:  # as traces have it
            made = graph.call_function(torch.ops.aten.clone.default, (made,))
            made.meta["val"] = value
        nodes.append(made)
    for at, function in enumerate(functions):
        first, others = operands[0], [torch.as_tensor(each) for each in operands[-1]]
        moving = [each[0] for some in operands[1:-1] for each in some]
        given = [*map(torch.as_tensor, first), *moving, *others]
        held[f"graph_{at}"] = make_fx(function)(*given)
    its = [graph.get_attr(f"graph_{at}") for at in range(len(functions))]
    parts, rest = [], list(nodes)
    for some in operands:
        parts.append(tuple(rest[: len(some)]))
        rest = rest[len(some) :]
    graph.output(graph.call_function(target, (*its, *parts)))
    return GraphModule(held, graph)


def test_a_scan(rounds: Rounds) -> None:
    h, c, u, v, w = some(3, 4), some(4), some(5, 4), some(5, 3, 4), some(3, 4)

    def step(h: Any, c: Any, u: Any, v: Any, w: Any) -> Any:
        h, c = torch.tanh(h + u) - v, c * u
        return h, c, c - u, h * w

    module = of_graphs(torch.ops.higher_order.scan, [step], (h, c), (u, v), (w,))
    found = rounds.settled(lambda: Rolled(module)(h, c, u, v, w))

    given: list[Any] = []
    for t in range(5):
        h, c, *its = step(h, c, u[t], v[t], w)
        given.append(its)
    joined = (torch.stack(each) for each in zip(*given, strict=True))
    torch.testing.assert_close(list(found), [h, c, *joined])
    assert rounds.loops == {0: (5, 2)}
    assert rounds.entered == {0: [(5, 4), (5, 3, 4)]}
    assert has_loops(module.graph)


def some(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def whiled(goes_on: Any, step: Any, carried: Sequence[Any], *others: Any) -> GraphModule:
    target = torch.ops.higher_order.while_loop
    return of_graphs(target, [lambda *its: (goes_on(*its),), step], carried, others)


def up_to(last: int) -> GraphModule:
    return whiled(lambda i, _: i < last, lambda i, y: (i + 1, torch.sin(y) + i), (0, some(3, 4)))


# What is carried, while what holds it goes on, a step; and the counts in front of each step.
COUNTED: dict[str, tuple[Any, Any, tuple[Any, ...], dict[int, list[int]]]] = {
    "up": (
        lambda i, _: i < 5,
        lambda i, y: (i + 1, torch.sin(y) * i),
        (0, some(3, 4)),
        {0: [0, 1, 2, 3, 4]},
    ),
    "twice, behind the state": (
        lambda _, i: i < 2,
        lambda y, i: (torch.cos(y) - i, i + 1),
        (some(3, 4), 0),
        {1: [0, 1]},
    ),
    "down by three": (
        lambda i, _: i >= 0,
        lambda i, y: (i - 3, torch.sin(y) * i),
        (7, some(3, 4)),
        {0: [7, 4, 1]},
    ),
    "two counts, a state between and one behind": (
        lambda i, _, j, __: i + j < 20,
        lambda i, y, j, z: (i + 1, torch.sin(y) + j, j + 2, torch.cos(z) + i),
        (1, some(3, 4), 6, some(4)),
        {0: [1, 2, 3, 4, 5], 2: [6, 8, 10, 12, 14]},
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_loops_that_are_counted(name: str, rounds: Rounds) -> None:
    goes_on, step, carried, counts = COUNTED[name]
    w = some(4)
    module = whiled(
        lambda *its: goes_on(*its[:-1]),
        lambda *its: tuple(
            each * its[-1] if at not in counts else each for at, each in enumerate(step(*its[:-1]))
        ),
        (state := list(carried)),
        w,
    )
    states = [each for each in carried if isinstance(each, torch.Tensor)]
    rolled = Rolled(module)
    found = rounds.settled(lambda: rolled(*states, w))

    seen: dict[int, list[int]] = {at: [] for at in counts}
    while goes_on(*state):
        for at, its in seen.items():
            its.append(state[at])
        state = [each if at in counts else each * w for at, each in enumerate(step(*state))]
    assert seen == counts
    torch.testing.assert_close(list(found), [torch.as_tensor(each) for each in state])
    steps = len(next(iter(counts.values())))
    assert rounds.loops == {0: (steps, len(states))}
    assert not rounds.entered  # what is counted is known
    (loop,) = rolled.counted.values()
    assert loop.steps == steps
    assert {at: each.tolist() for at, each in loop.counts.items()} == counts
    assert {at: int(each) for at, each in loop.last.items()} == {at: state[at] for at in counts}
    assert has_loops(module.graph)


# Why nobody counts the steps: data decide, or there are fewer than two.
UNCOUNTED: dict[str, Callable[[], GraphModule]] = {
    "none": lambda: up_to(0),
    "one": lambda: up_to(1),
    "data end it": lambda: whiled(
        lambda _, y: y.sum() < 9, lambda i, y: (i + 1, y.exp()), (0, some(3, 4))
    ),
    "data change the count": lambda: whiled(
        lambda i, _: i < 9, lambda i, y: (i + 1 + (y.sum() > 0), y.sin()), (0, some(3, 4))
    ),
    "data change another count": lambda: whiled(
        lambda i, _, __: i < 9,
        lambda i, j, y: (i + 1, j + (y.sum() > 0), y.sin()),
        (0, 3, some(3, 4)),
    ),
    "data are where it begins": lambda: whiled(
        lambda i, _: i < 9, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), some(3, 4))
    ),
    "two numbers": lambda: whiled(
        lambda i, _: i.sum() < 9, lambda i, y: (i + 1, y.sin()), ([0, 1], some(3, 4))
    ),
    "no integer": lambda: whiled(
        lambda i, _: i < 9, lambda i, y: (i + 1, y.sin()), (0.0, some(3, 4))
    ),
}


@pytest.mark.parametrize("name", UNCOUNTED)
def test_loops_that_nobody_counts(name: str) -> None:
    module = UNCOUNTED[name]()

    assert not Rolled(module).counted
    assert has_loops(module.graph)


def test_the_most_steps_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rolling._MOST == 65_536
    module = up_to(5)
    monkeypatch.setattr(rolling, "_MOST", 5)
    assert [each.steps for each in Rolled(module).counted.values()] == [5]
    monkeypatch.setattr(rolling, "_MOST", 4)
    assert not Rolled(module).counted

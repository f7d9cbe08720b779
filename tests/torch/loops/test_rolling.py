"""Loops that were traced step by step, and PyTorch's own: one body, whatever number of steps."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from fabric import Program, simulate
from operators.torch import Schedule, from_torch
from tests.profiles import spread


def cells(self: Any, x: Any) -> Any:
    """An LSTM's cell, and a layer on what it gives."""
    h = c = x.new_zeros(len(x), 4)
    given = []
    for t in range(x.shape[1]):
        h, c = self.cell(x[:, t], (h, c))
        given.append(self.layer(h))
    return torch.stack(given, 1), h


def gated(self: Any, x: Any) -> Any:
    """A gated cell on what is taken apart before; only the last state is read."""
    h = x[:, 0] * 0
    for u in x.unbind(1):
        h = self.gated(u, h)
    return h


def selective(self: Any, x: Any) -> Any:
    """A state-space recurrence whose factors depend on the input, as Mamba has it."""
    decay, into = torch.sigmoid(self.layer(x)), self.other(x)
    h, given = x.new_zeros(len(x), 4, 4), []
    for t in range(x.shape[1]):
        h = decay[:, t, :, None] * h + x[:, t, :, None] * into[:, t, None]
        given.append((h * into[:, t, None]).sum(-1))
    return torch.stack(given, 1)


def backwards(self: Any, x: Any) -> Any:
    """From the last step to the first, and back in order."""
    h, given = x[:, 0], []
    for t in reversed(range(x.shape[1])):
        h = 0.5 * h + self.layer(x[:, t])
        given.append(h)
    return torch.stack(given[::-1], 1)


def to_a_fixed_point(self: Any, x: Any) -> Any:
    """The same layer again and again: what comes in does not move on."""
    z = torch.zeros_like(x)
    for _ in range(x.shape[1]):
        z = torch.tanh(self.layer(z) + x)
    return z


def scanned(self: Any, x: Any) -> Any:
    """PyTorch's scan."""

    def step(h: Any, u: Any) -> Any:
        h = torch.tanh(self.layer(h) + u)
        return h, h * 2

    return scan(step, x.new_zeros(len(x), 4), x.transpose(0, 1))


def counted(self: Any, x: Any) -> Any:
    """PyTorch's while, which counts."""
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
    """One of the loops."""

    def __init__(self, loop: Callable[[Any, Any], Any]) -> None:
        """Draw the weights that one of them has."""
        super().__init__()
        self.loop = loop
        self.cell, self.gated = nn.LSTMCell(4, 4), nn.GRUCell(4, 4)
        self.layer, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        """Return what it gives."""
        return self.loop(self, x)


def imported(name: str, steps: int, schedule: Schedule | None = None) -> Program:
    """Return the program of a loop."""
    torch.manual_seed(0)
    module = Looping(LOOPS[name]).eval()
    return from_torch(module, (torch.randn(3, steps, 4),), schedule=schedule)


def goes_round(program: Program) -> bool:
    """Whether a state does."""
    return any("states" in each.name for each in program.nodes)


def assert_right(program: Program) -> None:
    """What is stored is PyTorch's, and takes as long without data."""
    report = simulate(program, mode="functional")
    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles


@pytest.mark.parametrize("name", spread(LOOPS, 3))
def test_units_do_not_grow(name: str) -> None:
    """Eight times as many steps take no more units, but what joins tiles in front of the loop."""
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
    """No schedule lets a step wait for a later one."""
    assert_right(imported(name, 9, schedule))


class Unequal(nn.Module):
    """Steps that only look alike."""

    def __init__(self, kind: str) -> None:
        """Say why they are none of one body."""
        super().__init__()
        self.kind = kind
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(10))

    def forward(self, x: Any) -> Any:
        """Return what 10 steps give."""
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
    """They stay side by side, and are right."""
    torch.manual_seed(0)

    program = from_torch(Unequal(kind).eval(), (torch.randn(3, 10, 4),))

    assert simulate(program, mode="functional").verified
    assert not goes_round(program)

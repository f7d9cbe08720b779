"""LSTM, GRU and plain recurrent layers, as loops and calls on all steps together.

Three calls mark a loop in a captured graph. PyTorch computes only their shapes. ``states`` returns
the state before each step. ``behind`` takes the state behind each step and returns the last one.
``each`` feeds an input of the loop step by step.

Source: the equations of torch.nn.LSTM, torch.nn.GRU and torch.nn.RNN in PyTorch's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

import torch
from torch.nn import functional

_numbers: Final = count()


def new_loop() -> int:
    return next(_numbers)


Cell: TypeAlias = Callable[..., tuple[Any, ...]]
"""Takes the products of inputs and of states with weights, and the states before each step. Returns
the states behind each step. The first of these states is the result."""


def loop_cells() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    return {
        aten.lstm.input: partial(_layers, _lstm),
        aten.gru.input: partial(_layers, _gru),
        aten.rnn_tanh.input: partial(_layers, partial(_plain, torch.tanh)),
        aten.rnn_relu.input: partial(_layers, partial(_plain, torch.relu)),
    }


def _layers(
    cell: Cell,
    x: Any,
    first: Any,
    params: Sequence[Any],
    has_biases: bool,
    layers: int,
    _dropout: float,
    _train: bool,
    both: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """Return the last layer's result at each step, and the last states of all layers."""
    first = [first] if isinstance(first, torch.Tensor) else first
    batched = x.dim() == 3
    if not batched:
        x, first = x.unsqueeze(1), [state.unsqueeze(1) for state in first]
    elif batch_first:
        x = x.transpose(0, 1)
    directions = 1 + both
    per_layer = len(params) // (layers * directions)
    last: list[tuple[Any, ...]] = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = params[number * per_layer : (number + 1) * per_layer]
            begins = [state.select(0, number) for state in first]
            inputs = x.flip((0,)) if direction else x
            y, ends = _steps(cell, inputs, begins, weights, has_biases)
            results.append(y.flip((0,)) if direction else y)
            last.append(ends)
        x = torch.cat(results, -1) if both else results[0]
    ended = tuple(torch.stack(states_) for states_ in zip(*last, strict=True))
    if not batched:
        return x.squeeze(1), *(state.squeeze(1) for state in ended)
    return (x.transpose(0, 1) if batch_first else x), *ended


def _steps(
    cell: Cell, x: Any, first: Sequence[Any], weights: Sequence[Any], has_biases: bool
) -> tuple[Any, tuple[Any, ...]]:
    """Return the result of each step ``[T, B, H]`` of inputs ``[T, B, I]``, and the last states."""
    w, u, *others = weights
    b, c = others[:2] if has_biases else (None, None)
    loop, steps = new_loop(), x.shape[0]
    given = enter(functional.linear(x, w, b), steps, loop)
    before = [states(begin, steps, loop, number) for number, begin in enumerate(first)]
    y, *after = cell(given, functional.linear(before[0], u, c), *before)
    for projection in others[2 * has_biases :]:
        y = functional.linear(y, projection)
    return y, tuple(behind(state, loop, number) for number, state in enumerate((y, *after)))


def _lstm(given: Any, kept: Any, _h: Any, s: Any) -> tuple[Any, Any]:
    i, f, g, o = (given + kept).chunk(4, -1)
    after = torch.sigmoid(f) * s + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(after), after


def _gru(given: Any, kept: Any, h: Any) -> tuple[Any]:
    r, z, n = given.chunk(3, -1)
    u, v, m = kept.chunk(3, -1)
    new = torch.tanh(n + torch.sigmoid(r + u) * m)
    update = torch.sigmoid(z + v)
    return ((1 - update) * new + update * h,)


def _plain(function: Callable[[Any], Any], given: Any, kept: Any, _h: Any) -> tuple[Any]:
    return (function(given + kept),)


_library: Final = torch.library.Library("step_loop", "DEF")
_library.define("states(Tensor first, int steps, int loop, int state) -> Tensor")
_library.define("behind(Tensor given, int loop, int state) -> Tensor")
_library.define("each(Tensor given, int steps, int loop) -> Tensor")

STATES: Final = "step_loop.states.default"
BEHIND: Final = "step_loop.behind.default"
EACH: Final = "step_loop.each.default"


def _states(first: torch.Tensor, steps: int, _loop: int, _state: int) -> torch.Tensor:
    return first.new_empty((steps, *first.shape))


def _behind(given: torch.Tensor, _loop: int, _state: int) -> torch.Tensor:
    return given.new_empty(given.shape[1:])


def _each(given: torch.Tensor, _steps: int, _loop: int) -> torch.Tensor:
    return given.clone()


_library.impl("states", _states, "CompositeExplicitAutograd")
_library.impl("behind", _behind, "CompositeExplicitAutograd")
_library.impl("each", _each, "CompositeExplicitAutograd")
# The call returns a carried state to ``states``, so it stays even if its result is not read.
torch.fx.node.has_side_effect(torch.ops.step_loop.behind.default)


def states(first: Any, steps: int, loop: int, state: int) -> Any:
    """Return the state before each of ``steps`` steps of a loop, ``[steps, *first.shape]``.

    A single step needs no loop: it reads the first state.
    """
    if _is_single(steps):
        return first.unsqueeze(0)
    return torch.ops.step_loop.states.default(first, steps, loop, state)


def behind(given: Any, loop: int, state: int) -> Any:
    """Return the state behind the last step, from ``given``, the states behind all steps."""
    if _is_single(given.shape[0]):
        return given.squeeze(0)
    return torch.ops.step_loop.behind.default(given, loop, state)


def enter(given: Any, steps: int, loop: int) -> Any:
    """Return an input ``[steps, *shape]`` of a loop, fed step by step."""
    if _is_single(steps):
        return given
    return torch.ops.step_loop.each.default(given, steps, loop)


def _is_single(steps: Any) -> bool:
    """Whether ``steps`` is 1; a symbol is at least 2."""
    return isinstance(steps, int) and steps == 1

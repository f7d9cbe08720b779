"""Calls that stand for loops in a captured graph: PyTorch knows their shapes, and nothing else.

``states``: a state before each step. ``behind``: the state behind each step, of which the last one
is given. ``each``: what comes into a loop step by step.
"""

from __future__ import annotations

from typing import Any, Final

import torch

__all__ = ["BEHIND", "EACH", "STATES", "behind", "each", "states"]

_library: Final = torch.library.Library("step_loop", "DEF")
_library.define("states(Tensor first, int steps, int loop, int state) -> Tensor")
_library.define("behind(Tensor given, int loop, int state) -> Tensor")
_library.define("each(Tensor given, int steps, int loop) -> Tensor")

STATES: Final = "step_loop.states.default"
BEHIND: Final = "step_loop.behind.default"
EACH: Final = "step_loop.each.default"


def _states(first: torch.Tensor, steps: int, loop: int, state: int) -> torch.Tensor:
    del loop, state
    return first.new_empty((steps, *first.shape))


def _behind(given: torch.Tensor, loop: int, state: int) -> torch.Tensor:
    del loop, state
    return given.new_empty(given.shape[1:])


def _each(given: torch.Tensor, steps: int, loop: int) -> torch.Tensor:
    del steps, loop
    return given.clone()


_library.impl("states", _states, "CompositeExplicitAutograd")
_library.impl("behind", _behind, "CompositeExplicitAutograd")
_library.impl("each", _each, "CompositeExplicitAutograd")
# What goes round is read nowhere else.
torch.fx.node.has_side_effect(torch.ops.step_loop.behind.default)


def states(first: Any, steps: int, loop: int, state: int) -> Any:
    """Return the state before each of ``steps`` steps of a loop, ``[steps, *first.shape]``."""
    return torch.ops.step_loop.states.default(first, steps, loop, state)


def behind(given: Any, loop: int, state: int) -> Any:
    """Say what the state is behind each step; return the last one."""
    return torch.ops.step_loop.behind.default(given, loop, state)


def each(given: Any, steps: int, loop: int) -> Any:
    """Return what comes into a loop, one step after the other: ``[steps, *shape]``."""
    return torch.ops.step_loop.each.default(given, steps, loop)

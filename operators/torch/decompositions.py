"""Calls that nobody imports as they are, and what is computed in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from operators.torch.loops.cells import loop_cells

__all__ = ["decompositions"]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return what PyTorch makes of calls, and what we do of some that it leaves whole."""
    known: dict[Any, Callable[..., Any]] = torch.export.default_decompositions()
    known[torch.ops.aten._native_batch_norm_legit_no_training.default] = _batch_norm
    return known | loop_cells()


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, _momentum: float, eps: float
) -> Any:
    """Normalise by what was learnt: a factor and a term for each channel, made of weights alone."""
    factor = torch.rsqrt(variance.float() + eps)
    factor = factor if weight is None else factor * weight.float()
    term = -mean.float() * factor
    term = term if bias is None else term + bias.float()
    channels = (1, -1, *(1 for _ in x.shape[2:]))
    result = (x.float() * factor.view(channels) + term.view(channels)).to(x.dtype)
    return result, mean.new_empty(0), mean.new_empty(0)

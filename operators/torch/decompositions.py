"""Decompositions of calls without an importer: PyTorch's, and our own for a few calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decompositions as decompositions_

from operators.torch.loops.cells import loop_cells


def decompositions() -> dict[Any, Callable[..., Any]]:
    rules: dict[Any, Callable[..., Any]] = torch.export.default_decompositions()
    aten = torch.ops.aten
    rules[aten._native_batch_norm_legit_no_training.default] = _batch_norm
    rules[aten._native_batch_norm_legit.no_stats] = _instance_norm
    rules[aten.native_group_norm.default] = _group_norm
    rules[aten.linalg_vector_norm.default] = _vector_norm
    rules[aten._cdist_forward.default] = _distances
    rules[aten._trilinear.default] = _trilinear
    rules[aten.grid_sampler_2d.default] = decompositions_.grid_sampler_2d
    rules[aten.unfold.default] = _windows
    rules[aten.var_mean.correction] = _variance_and_mean
    rules[aten.round.decimals] = _rounded
    rules[aten.bucketize.Tensor] = _buckets
    rules[aten.rrelu_with_noise_functional.default] = _leaky
    # Not ``rules | ...``: this dict subclass loads its entries lazily, and a union would be empty.
    rules.update(loop_cells())
    return rules


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, _momentum: float, eps: float
) -> Any:
    """Multiply and add one number per channel. These numbers depend only on weights."""
    factor = torch.rsqrt(variance.float() + eps)
    factor = factor if weight is None else factor * weight.float()
    term = -mean.float() * factor
    term = term if bias is None else term + bias.float()
    channels = (1, -1, *(1 for _ in x.shape[2:]))
    result = (x.float() * factor.view(channels) + term.view(channels)).to(x.dtype)
    return result, mean.new_empty(0), mean.new_empty(0)


def _instance_norm(
    x: Any, weight: Any, bias: Any, _training: bool, _momentum: float, eps: float
) -> Any:
    rows = x.transpose(0, 1).reshape(x.shape[1], -1)
    result = torch.nn.functional.layer_norm(rows.float(), rows.shape[1:], eps=eps)
    result = _scaled(result, weight, bias, (-1, 1)).to(x.dtype)
    result = result.reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1)
    return result, *_moments(rows.float(), eps)


def _group_norm(
    x: Any, weight: Any, bias: Any, batch: int, channels: int, _size: int, groups: int, eps: float
) -> Any:
    rows = x.reshape(batch, groups, -1)
    result = torch.nn.functional.layer_norm(rows.float(), rows.shape[2:], eps=eps)
    result = _scaled(result.reshape(batch, channels, -1), weight, bias, (1, -1, 1))
    mean, deviation = _moments(rows.float(), eps)
    return result.reshape(x.shape).to(x.dtype), mean.to(x.dtype), deviation.to(x.dtype)


def _moments(rows: Any, eps: float) -> tuple[Any, Any]:
    return rows.mean(-1), torch.rsqrt(rows.var(-1, correction=0) + eps)


def _scaled(x: Any, weight: Any, bias: Any, channels: tuple[int, ...]) -> Any:
    if weight is not None:
        x = x * weight.float().reshape(channels)
    return x if bias is None else x + bias.float().reshape(channels)


def _vector_norm(
    x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    result = x.dtype if dtype is None else dtype
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    x = x.float()
    if order == 2:
        return (x * x).sum(dims, keepdim).sqrt().to(result)
    if order == 1:
        return x.abs().sum(dims, keepdim).to(result)
    if order == float("inf"):
        return x.abs().amax(dims, keepdim).to(result)
    if order == -float("inf"):
        return x.abs().amin(dims, keepdim).to(result)
    if order == 0:
        return (x != 0).to(torch.float32).sum(dims, keepdim).to(result)
    return x.abs().pow(order).sum(dims, keepdim).pow(1 / order).to(result)


def _distances(left: Any, right: Any, order: float, _mode: Any) -> Any:
    return _vector_norm(left.unsqueeze(-2) - right.unsqueeze(-3), order, [-1])


def _trilinear(
    one: Any, two: Any, three: Any, first: Any, second: Any, third: Any, dims: Any, _unroll: int = 1
) -> Any:
    for dim in first:
        one = one.unsqueeze(dim)
    for dim in second:
        two = two.unsqueeze(dim)
    for dim in third:
        three = three.unsqueeze(dim)
    return (one * two * three).sum(dims)


def _windows(x: Any, dim: int, size: int, step: int) -> Any:
    dim %= x.ndim
    count = (x.shape[dim] - size) // step + 1
    places = torch.arange(count)[:, None] * step + torch.arange(size)
    windows = x.movedim(dim, -1).index_select(-1, places.reshape(-1).to(x.device))
    return windows.unflatten(-1, (count, size)).movedim(-2, dim)


def _variance_and_mean(
    x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Any, Any]:
    mean = x.mean() if dim is None else x.mean(dim, keepdim)
    return torch.var(x, dim, correction=correction, keepdim=keepdim), mean


def _rounded(x: Any, *, decimals: int) -> Any:
    """Round at a decimal place, scaled in 32 bits or more, as PyTorch does."""
    factor = 10.0 ** abs(decimals)
    wide = x.float()
    result = (wide * factor).round() / factor if decimals > 0 else (wide / factor).round() * factor
    return result.to(x.dtype)


def _buckets(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Return the number of boundaries below each number; a NaN is above all boundaries."""
    above = boundaries > x[..., None] if right else boundaries >= x[..., None]
    dtype = torch.int32 if out_int32 else torch.int64
    return boundaries.numel() - above.sum(-1, dtype=dtype)


def _leaky(
    x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False
) -> Any:
    """Multiply negative numbers by the mean slope. In training, PyTorch draws the slopes."""
    if training:
        return NotImplemented  # the call stays, and is refused since it draws random numbers
    return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise

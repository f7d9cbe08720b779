"""What PyTorch computes, where its own result is no measure: in more digits, and in one order.

Some calls of PyTorch round sums of 16-bit numbers at each summand, or have no form for such
numbers at all. Others may return equal numbers in any order, and do.
"""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Reference"]

_ATEN: Final = torch.ops.aten

_ROUNDED_WITHIN: Final = {
    _ATEN.native_layer_norm.default,
    _ATEN.native_batch_norm.default,
    _ATEN._native_batch_norm_legit.no_stats,
    _ATEN._native_batch_norm_legit_no_training.default,
    _ATEN._adaptive_avg_pool3d.default,
    _ATEN.avg_pool3d.default,
}
"""Calls whose result in a type of 16 bits is further from what they say than its rounding."""

_NARROW: Final = (torch.bfloat16, torch.float16)


class Reference(TorchDispatchMode):
    """Calls give what they say, rounded once, and equal numbers in the order that they have."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call ``func``, in more digits or in one order where it needs that."""
        kwargs = kwargs or {}
        if func in _ROUNDED_WITHIN and args[0].dtype in _NARROW:
            return _rounded_once(func, args, kwargs)
        ordered = _ORDERED.get(func)
        return func(*args, **kwargs) if ordered is None else ordered(*args, **kwargs)


def _rounded_once(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def changed(given: Any, is_from: Callable[[Any], bool], to: torch.dtype) -> Any:
        return torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda each: each.to(to) if is_from(each) else each, given
        )

    def is_float(tensor: Any) -> bool:
        return bool(tensor.is_floating_point())

    wide = changed((args, kwargs), is_float, torch.float64)
    return changed(func(*wide[0], **wide[1]), is_float, args[0].dtype)


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not x.ndim:
        return _ATEN.kthvalue.default(x, k, dim, keepdim)
    found = [each.select(dim, k - 1) for each in torch.sort(x, dim=dim, stable=True)]
    return tuple(each.unsqueeze(dim) if keepdim else each for each in found)


_ORDERED: Final = {_ATEN.kthvalue.default: _kthvalue}

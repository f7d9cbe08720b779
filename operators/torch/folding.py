"""Calls that depend on no data: worked out by PyTorch itself.

Integers and booleans (positions, masks, lengths) at once, since they decide how a model is
planned; numbers made of weights and buffers when a run asks for them. What is made of weights and
of what the module is called with is what it computes, integers or not: it is not folded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from torch.fx import Node
from torch.fx.node import map_arg

from operators.kernels.tensors import Stored
from operators.torch.call import Spec
from operators.torch.capture import Captured, specs_of, target_of
from operators.torch.numbers import array_of

__all__ = ["Constants"]

_OF_SHAPES: Final = frozenset(
    {
        *(f"aten.{name}_like.default" for name in ("empty", "full", "ones", "zeros")),
        *(f"aten.new_{name}.default" for name in ("empty", "full", "ones", "zeros")),
    }
)
"""Calls that ask a tensor for its shape and type only."""


class Constants:
    """What depends on no data, by node."""

    def __init__(self, captured: Captured) -> None:
        """Know parameters, buffers, and inputs of integers."""
        self._make: Final[dict[Node, Callable[[], Any]]] = {
            node: _held(tensor)
            for node, tensor in captured.tensors.items()
            if node not in captured.data
        }
        self._real: Final = {node: not _is_meta(captured.tensors[node]) for node in self._make}
        self._early: Final = {
            node for node in self._make if node not in captured.parameters and self._real[node]
        }
        self._weights: Final = set(captured.parameters)
        self._inputs: Final = set(captured.inputs)

    def __contains__(self, node: Node) -> bool:
        """Whether a node depends on no data."""
        return bool(node in self._make)

    def fold(self, node: Node) -> bool:
        """Take in a call if all that it reads depends on no data; say whether it does."""
        reads = [] if target_of(node) in _OF_SHAPES else node.all_input_nodes
        if any(each not in self._make for each in reads):
            return False
        weighs = any(each in self._weights for each in reads)
        asked = any(each in self._inputs for each in reads)
        if weighs and asked:
            return False
        if weighs:
            self._weights.add(node)
        if asked:
            self._inputs.add(node)
        self._real[node] = all(self._real[each] for each in reads)
        if self._real[node] and all(each in self._early for each in reads):
            self._early.add(node)
        self._make[node] = cache(lambda: self._called(node))
        return True

    def stored(self, node: Node, name: str) -> Stored:
        """Return the tensor of a node.

        Raises:
            UnsupportedError: it has elements that tiles do not have.
        """
        (spec,) = specs_of(node)
        return self._stored(node, name, spec, self._make[node])

    def pairs(self, node: Node) -> Stored:
        """Return complex numbers as pairs of real ones along a last dimension."""
        (spec,) = specs_of(node)
        make = self._make[node]
        pairs = Spec((*spec.shape, 2), np.dtype(np.float32))
        return self._stored(node, node.name, pairs, lambda: torch.view_as_real(make()))

    def single(self, node: Node) -> Stored:
        """Return the single float64 number of a node as float32, rounded by PyTorch."""
        make = self._make[node]
        spec = Spec((), np.dtype(np.float32))
        return self._stored(node, node.name, spec, lambda: make().to(torch.float32))

    def _stored(
        self, node: Node, name: str, spec: Spec, make: Callable[[], torch.Tensor]
    ) -> Stored:
        data = (lambda: _unwritten(array_of(make()))) if self._real[node] else None
        return Stored.of(name, spec.shape, spec.dtype, data, known=node in self._early)

    def value(self, node: Node) -> Any:
        """Return what a node gives, whatever it is."""
        return self._make[node]()

    def _called(self, node: Node) -> Any:
        real = self._real[node]

        def given(each: Node) -> Any:
            if target_of(node) in _OF_SHAPES:
                asked = each.meta["val"]
                return torch.empty(asked.shape, dtype=asked.dtype, device="cpu" if real else "meta")
            value = self._make[each]()
            return value if real or not isinstance(value, torch.Tensor) else value.to("meta")

        args = map_arg(node.args, given)
        kwargs = dict(map_arg(node.kwargs, given))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu" if real else "meta")
        assert callable(node.target)
        with torch.no_grad():
            return node.target(*args, **kwargs)


def _held(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    return lambda: tensor


def _unwritten(array: np.ndarray) -> np.ndarray:
    """Say that nobody writes to it, so that nobody has to copy it: files may be mapped."""
    seen: object = array
    while isinstance(seen, np.ndarray):
        seen.flags.writeable = False
        seen = seen.base
    return array


def _is_meta(tensor: torch.Tensor) -> bool:
    return bool(tensor.device.type == "meta")

"""Tensors of data-dependent length, as tensors of constant length with a mask of chosen places."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, eq=False)
class Choice:
    """Places along a dimension that data choose.

    Attributes:
        valid: for each place, whether it is chosen.
        by: identifies the calls that chose. Choices with equal ``by`` are equal.
    """

    valid: Any
    by: Hashable

    @property
    def size(self) -> int:
        return int(self.valid.shape[0])

    @property
    def count(self) -> Any:
        """The number of chosen places, as a tensor without dimensions."""
        return self.valid.sum()


class Number:
    """An integer that data decide.

    Attributes:
        value: a tensor without dimensions.
        of: the choice that chose this number of places. A later call may set it. None if unknown,
            or if the number is not a length.
    """

    def __init__(self, value: Any, of: Choice | None = None) -> None:
        self.value = value
        self.of = of


@dataclass(frozen=True, eq=False)
class Chosen:
    """A tensor with places along a dimension that data choose.

    Attributes:
        tensor: has all places, chosen or not.
        dim: the dimension, at least 0.
        is_place: whether each element is the number of its place.
    """

    tensor: Any
    choice: Choice
    dim: int
    is_place: bool = False

    @property
    def from_right(self) -> int:
        """The dimension, counted from the last one, which is -1."""
        return self.dim - int(self.tensor.ndim)

    def filled(self, number: float) -> Any:
        """Return the tensor with ``number`` at places that are not chosen."""
        shape = [1] * self.tensor.ndim
        shape[self.dim] = -1
        return torch.where(self.choice.valid.view(shape), self.tensor, number)


def has_lengths(value: Any) -> bool:
    """Whether a leaf of ``value`` has a length that data decide."""
    return any(isinstance(each, Chosen | Number) for each in tree_leaves(value))

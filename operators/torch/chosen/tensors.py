"""Tensors whose length data decide, as tensors of a known length and which of it counts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, eq=False)
class Choice:
    """Places along a dimension that data choose.

    Attributes:
        valid: which of them, booleans.
        by: what chose them: choices by the same calls are the same.
    """

    valid: Any
    by: Hashable

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self.valid.shape[0])

    @property
    def count(self) -> Any:
        """How many of them are chosen, as a tensor of no dimension."""
        return self.valid.sum()


class Number:
    """An integer that data decide.

    Attributes:
        value: it, as a tensor of no dimension.
        of: the choice that has so many places, which may be found out later; None of any other
            number, or if it is not known.
    """

    def __init__(self, value: Any, of: Choice | None = None) -> None:
        self.value = value
        self.of = of


@dataclass(frozen=True, eq=False)
class Chosen:
    """A tensor of which data choose the places along a dimension.

    Attributes:
        tensor: with all places.
        choice: of places.
        dim: the dimension, from 0 on.
        is_place: it has the number of each place itself.
    """

    tensor: Any
    choice: Choice
    dim: int
    is_place: bool = False

    @property
    def from_right(self) -> int:
        """The dimension, counted from behind: -1 is the last one."""
        return self.dim - int(self.tensor.ndim)

    def filled(self, number: float) -> Any:
        """Return the tensor with a number where nothing is chosen."""
        shape = [1] * self.tensor.ndim
        shape[self.dim] = -1
        return torch.where(self.choice.valid.view(shape), self.tensor, number)


def leaves(value: Any) -> list[Any]:
    """Return what is in tuples, lists and mappings, one after the other."""
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value]


def has_lengths(value: Any) -> bool:
    """Whether there is something in it whose length data decide."""
    return any(isinstance(each, Chosen | Number) for each in leaves(value))

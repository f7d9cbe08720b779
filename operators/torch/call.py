"""A call of a captured model, and the error for a call without an importer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from operators.kernels.tensors import View


@dataclass(frozen=True)
class Spec:
    """A tensor that a call returns."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Call:
    """A call, with its planned arguments.

    Attributes:
        target: such as ``aten.linear.default``.
        name: of its result in the captured graph, unique.
        args, kwargs: numbers, texts, lists of both, and a ``View`` in place of each tensor.
        results: the tensors that it returns, in order.
        many: whether it returns a tuple of tensors.
        module: path of the calling module, such as ``model.layers.0.mlp``; empty at the top.
        file, line: in the user's model; None if unknown.
    """

    target: str
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[Spec, ...]
    many: bool
    module: str
    file: str | None
    line: int | None

    @property
    def result(self) -> Spec:
        """The tensor of a call that returns a single one."""
        return self.results[0]

    def tensor(self, place: int = 0) -> View:
        """Return an argument that is a tensor."""
        view = self.args[place]
        assert isinstance(view, View)
        return view

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """Return an argument that may be given by its place or by its name."""
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)

    def dimension(self, place: int, default: int = -1) -> int:
        """Return a dimension of the first tensor, from 0; PyTorch captures some unchecked."""
        dim, rank = int(self.argument(place, "dim", default)), len(self.tensor().shape) or 1
        if not -rank <= dim < rank:
            raise UnsupportedError(f"dim is {dim}: expected {-rank} to {rank - 1}")
        return dim % rank

    def __str__(self) -> str:
        return f"{self.target} in {self.module}" if self.module else self.target


class UnsupportedError(Exception):
    """A call that cannot be imported; the message states what the import needs."""

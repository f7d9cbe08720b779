"""What importers of calls work with: the schedule, and the model that grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

import numpy as np

from fabric import Layout
from operators.functions.base import Function
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model
from operators.kernels.row_local import RowLocal, followed
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.torch.call import Call, Spec

__all__ = ["Importing", "UnsupportedError"]


class UnsupportedError(Exception):
    """A call that cannot be imported; says what would be needed."""


class Importing:
    """The model while its calls are imported, one after the other.

    Attributes:
        schedule: how it is to be tiled and ordered.
        model: the kernels so far.
    """

    def __init__(self, schedule: Schedule) -> None:
        """Begin with no kernels."""
        self.schedule: Final = schedule
        self.model: Final = Model()

    def add(self, kernel: Kernel) -> tuple[View, ...]:
        """Put a kernel behind the others and return views of its results."""
        self.model.kernels.append(kernel)
        return tuple(map(View.of, kernel.results))

    def name_of(self, call: Call) -> str:
        """Return a name for the kernel of a call, after its module and what it does."""
        what = call.target.split(".")[1].strip("_") if "." in call.target else call.target
        module = call.module.replace(".", "_")
        return self.model.name(f"{module}_{what}" if module else what)

    def known(self, view: object) -> np.ndarray | None:
        """Return the numbers of a tensor that depends on no data; None of any other."""
        if isinstance(view, View) and isinstance(view.source, Stored):
            return view.array() if view.source.known else None
        return None

    def elementwise(
        self, call: Call, function: Function, operands: Sequence[View], *, whole_rows: bool = False
    ) -> View:
        """Apply ``function`` to tiles of operands, broadcast to the shape of the result.

        Args:
            call: what is imported.
            function: of a Map over the operands' tiles.
            operands: each of a shape that broadcasts to the result's.
            whole_rows: a tile has to hold whole rows of the last dimension.
        """
        shape = call.result.shape
        layout = followed(operands, shape, self.schedule, whole_rows=whole_rows)
        reading = tuple(Operand(each.expanded(shape), layout, broadcasts=True) for each in operands)
        name = self.name_of(call)
        result = self.computed(name, call.result, layout)
        (view,) = self.add(RowLocal(name, function, reading, result))
        return view

    @staticmethod
    def computed(name: str, spec: Spec, layout: Layout) -> Computed:
        """Return a tensor that a kernel will give in ``layout``."""
        return Computed(name, spec.shape, spec.dtype, layout)

    @staticmethod
    def unsupported(needed: str) -> NoReturn:
        """Refuse the call that is being imported.

        Raises:
            UnsupportedError: always; ``needed`` says what would make it possible.
        """
        raise UnsupportedError(needed)

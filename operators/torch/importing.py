"""What importers of calls work with: the schedule, and the model that grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

import numpy as np

from fabric import Layout
from operators.functions.base import Function
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model
from operators.kernels.routing import Routing
from operators.kernels.row_local import RowLocal, followed
from operators.kernels.schedule import Schedule
from operators.kernels.steps import Reshaped
from operators.kernels.tensors import Computed, Opaque, Source, Stored, View
from operators.torch.call import Call, Spec
from operators.torch.choices import Choices
from operators.torch.refusing import UnsupportedError
from operators.torch.routed_rows import on_routed_rows

__all__ = ["Importing", "UnsupportedError"]


class Importing:
    """The model while its calls are imported, one after the other.

    Attributes:
        schedule: how it is to be tiled and ordered.
        choices: of experts, for runs that cannot ask the data.
        model: the kernels so far.
        routings: of the layers so far whose tokens go to experts.
        wholes: of tensors in an opaque form, where one was asked for in a layout.
    """

    def __init__(self, schedule: Schedule, choices: Choices) -> None:
        """Begin with no kernels."""
        self.schedule: Final = schedule
        self.choices: Final = choices
        self.model: Final = Model()
        self.routings: Final[list[Routing]] = []
        self.wholes: Final[dict[Source, View]] = {}

    def add(self, kernel: Kernel) -> tuple[View, ...]:
        """Put a kernel behind the others and return views of its results.

        Raises:
            UnsupportedError: it reads a tensor in an opaque form as if it came in a layout.
        """
        for operand in kernel.operands:
            source = operand.view.source
            if isinstance(source, Opaque) and not (
                operand.layout is None and _as_it_is(operand.view)
            ):
                self.unsupported(f"it is given {source.form}: expected a tensor whole")
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
        if any(isinstance(each.source, Opaque) for each in operands):
            name = self.name_of(call)
            return on_routed_rows(
                self.model, name, call.result, function, operands, whole_rows=whole_rows
            )
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


def _as_it_is(view: View) -> bool:
    """Whether a view of rows in an opaque form shows them as they are, but for their dimensions."""
    return all(isinstance(step, Reshaped) for step, _ in view.steps) and (
        view.shape[:1] == view.source.shape[:1]
    )

"""Send rows to experts, apply calls to routed rows, and describe the integers of a choice.

Models sort tokens by expert. The order depends on data, and no kernel computes it. A tensor of such
integers is kept as a description (``Control``) until a call indexes rows by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from fabric import Layout
from operators.functions.steps import Chain, Step, shapes
from operators.kernels.grouped import RaggedMap, common_form
from operators.kernels.kernel import Operand
from operators.kernels.model import Model
from operators.kernels.routed import Deal, Routed, Routing, Spread, form_of
from operators.kernels.tensors import Opaque, Stored, View
from operators.torch.call import Call, UnsupportedError


def deal(
    model: Model,
    name: str,
    x: View,
    routing: Routing,
    places: Callable[[], NDArray[np.int64]],
    indices: View | None,
) -> View:
    """Send the rows of ``x``, along its first dimension, to experts.

    ``places`` returns the experts of each row. If data choose them, ``indices`` is the tensor of
    the choice, [tokens, hits].
    """
    cols = math.prod(x.shape[1:])
    flat = (x.shape[0], cols)
    count = routing.tokens * routing.hits
    if cols == 1 and x.shape[0] == count:
        flat = (routing.tokens, routing.hits)  # the usual shape
    rows = rows_operand(x.reshaped(flat), cols)
    which = None if indices is None else rows_operand(indices, routing.hits)
    result = Opaque(name, (count, cols), x.dtype, Routed(routing, Spread.ROWS))
    kernel = Deal(name, routing, rows, places, which, result)
    model.kernels.append(kernel)
    return View.of(result)


def rows_operand(view: View, cols: int) -> Operand:
    """Return an operand that reads a matrix row by row; a stored matrix in tiles of ``cols``."""
    layout = view.layout
    if layout is not None and layout.tile[-1] == view.shape[-1]:
        divides = not any(size % part for size, part in zip(layout.shape, layout.tile, strict=True))
        if divides and layout.same_order(Layout.tiled(view.shape, layout.tile)):
            return Operand(view, layout)
    width = cols if isinstance(view.source, Stored) else view.shape[-1]
    return Operand(view, Layout.tiled(view.shape, (1, width)))


def to_experts(model: Model, view: View, routing: Routing) -> View:
    """Send ``view``, with one row for each routed row, to the experts of those rows.

    Raises:
        UnsupportedError: data choose the experts, or the rows are in another order.
    """
    form = opaque_form(view)
    if isinstance(form, Routed):
        if form.routing is not routing:
            raise UnsupportedError("it is given rows of two choices of experts: expected one")
        return view
    if routing.rows is None or not isinstance(form, Gathered | None):
        what = "other rows" if form is None else form
        raise UnsupportedError(
            f"it is given rows of experts and {what}: expected rows of the same experts"
        )
    count = len(routing.rows.experts)
    rows, order = (view, np.arange(count)) if form is None else (form.rows, form.order)
    if view.shape[0] != count:
        raise UnsupportedError(
            f"it is given rows of experts and a tensor {list(view.shape)}: "
            f"expected {count} rows, one per row of the experts"
        )
    places = routing.rows.places(order, rows.shape[0])
    if places is None:
        raise UnsupportedError("it is given rows of experts in two orders: expected one")
    return deal(model, model.name(f"{view.source.name}_route"), rows, routing, lambda: places, None)


def opaque_form(view: object) -> object:
    """Return the form of an opaque tensor; None for other tensors and values."""
    return view.source.form if isinstance(view, View) and isinstance(view.source, Opaque) else None


def on_routed_rows(
    model: Model, name: str, operands: Sequence[View], steps: Sequence[Step], *, whole: bool
) -> View:
    """Append a kernel that applies ``steps`` to routed rows, with all operands in one form.

    At least one operand is routed. Steps read operands, numbered from 0, and earlier steps. With
    ``whole``, each tile has whole rows.

    Raises:
        UnsupportedError: an operand cannot be sent to the experts of the routed rows.
    """
    routing = next(form.routing for form in map(opaque_form, operands) if isinstance(form, Routed))
    routed = [to_experts(model, each, routing) for each in operands]
    forms = [form_of(each.source) for each in routed]
    sizes = [(1, math.prod(each.shape[1:])) for each in routed]
    cols = int(shapes(sizes, steps)[-1][1])
    form = common_form(forms, whole_rows=whole or len(set(sizes)) > 1)
    result = Opaque(name, (operands[0].shape[0], cols), steps[-1].dtype, form)
    chain = Chain(len(routed), tuple(steps))
    model.kernels.append(RaggedMap(name, chain, [Operand(each, None) for each in routed], result))
    return View.of(result)


class Meaning(Enum):
    """The meaning of integers that follow from a choice of experts."""

    SORTED = "the experts of all tokens, sorted"
    ORDER = "the order that sorts the experts of all tokens"
    TOKENS = "the tokens, sorted by expert"
    COUNTS = "the number of each expert's tokens"
    OFFSETS = "the end of each expert's tokens"
    INVERSE = "the places of the sorted tokens"


@dataclass(frozen=True)
class Control:
    """Integers that follow from a choice of experts; the form of an ``Opaque``, without a kernel.

    Attributes:
        indices: the experts of each token, [tokens, hits].
    """

    routing: Routing
    indices: View
    meaning: Meaning

    def __str__(self) -> str:
        return f"integers that data decide ({self.meaning.value})"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Complex numbers; the form of an ``Opaque``, without a kernel.

    Attributes:
        reals: real and imaginary parts along a last dimension of 2.
    """

    reals: View

    def __str__(self) -> str:
        return "complex numbers"


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows in a constant order; the form of an ``Opaque``, without a kernel.

    Attributes:
        rows: the tensor that is indexed along its first dimension.
        order: the index of each row.
    """

    rows: View
    order: NDArray[np.int64]
    call: Call

    def __str__(self) -> str:
        return "rows in another order"


@dataclass(frozen=True)
class NoElements:
    """A tensor without elements; the form of an ``Opaque``, without a kernel."""

    def __str__(self) -> str:
        return "a tensor without elements"


@dataclass(frozen=True, eq=False)
class Collected:
    """Routed rows in the order of the tokens; the form of an ``Opaque``, without a kernel.

    Attributes:
        places: the expert of each row, [rows, 1].
        indices: the experts of each token, [tokens, hits]; None if the choice is constant.
    """

    rows: View
    places: Callable[[], NDArray[np.int64]]
    indices: View | None

    def __str__(self) -> str:
        return "rows of tokens, one for each expert of a token"

"""Rows to experts, what is computed of them there, and what else follows from a choice of experts.

Models sort the tokens by expert: integers that depend on data, which no kernel computes here. Each
is kept as what it says of the choice, until rows are indexed by it.
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
from operators.kernels.routed import Deal, Routed, Routing, Spread
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

    Args:
        model: that grows.
        name: of the kernel.
        x: the rows.
        routing: of the layer.
        places: the experts of each row.
        indices: the same as data choose it, [tokens, hits].
    """
    cols = math.prod(x.shape[1:])
    flat = (x.shape[0], cols)
    count = routing.tokens * routing.hits
    if cols == 1 and x.shape[0] == count:
        flat = (routing.tokens, routing.hits)  # as they usually come
    seen = x.reshaped(flat)
    which = None
    if indices is not None:
        which = rows_operand(indices, routing.hits)
    result = Opaque(name, (count, cols), x.dtype, Routed(routing, Spread.ROWS))
    kernel = Deal(name, routing, rows_operand(seen, cols), places, which, result)
    model.kernels.append(kernel)
    return View.of(result)


def rows_operand(view: View, cols: int) -> Operand:
    """Return how the rows of a matrix, or parts of them of ``cols`` columns, are read in order."""
    layout = view.layout
    if layout is not None and layout.tile[-1] == view.shape[-1]:
        in_order = Layout.tiled(view.shape, layout.tile) if _divides(layout) else None
        if in_order is not None and layout.same_order(in_order):
            return Operand(view, layout)
    width = cols if isinstance(view.source, Stored) else view.shape[-1]
    return Operand(view, Layout.tiled(view.shape, (1, width)))


def _divides(layout: Layout) -> bool:
    return not any(size % part for size, part in zip(layout.shape, layout.tile, strict=True))


def to_experts(model: Model, view: View, routing: Routing) -> View:
    """Return rows that stand beside routed rows, each as its own, at their experts as well.

    Raises:
        UnsupportedError: data choose the experts, or the order is another.
    """
    form = view.source.form if isinstance(view.source, Opaque) else None
    if isinstance(form, Routed):
        if form.routing is not routing:
            raise UnsupportedError("it is given rows of two choices of experts: expected one")
        return view
    if routing.rows is None or not isinstance(form, Gathered | None):
        what = "other rows" if form is None else form
        raise UnsupportedError(f"it is given rows of experts and {what}: expected rows of the same")
    count = len(routing.rows.experts)
    rows, order = (view, np.arange(count)) if form is None else (form.rows, form.order)
    if view.shape[0] != count:
        raise UnsupportedError(
            f"it is given rows of experts and a tensor {list(view.shape)}: "
            f"expected as many rows as experts have, {count}"
        )
    places = routing.rows.places(order, rows.shape[0])
    if places is None:
        raise UnsupportedError("it is given rows of experts in two orders: expected one")
    found: NDArray[np.int64] = places
    return deal(model, model.name(f"{view.source.name}_route"), rows, routing, lambda: found, None)


def on_routed_rows(
    model: Model, name: str, operands: Sequence[View], steps: Sequence[Step], *, whole: bool
) -> View:
    """Do ``steps`` on routed rows, in the form in which they meet.

    Args:
        model: that grows.
        name: of the kernel.
        operands: of which one is routed at least.
        steps: that read operands, numbered from 0, and steps before them.
        whole: tiles have to hold whole rows.

    Raises:
        UnsupportedError: what stands beside them cannot go to their experts.
    """
    given = [each.source.form for each in operands if isinstance(each.source, Opaque)]
    routing = next(form.routing for form in given if isinstance(form, Routed))
    routed = [to_experts(model, each, routing) for each in operands]
    forms = []
    for each in routed:
        assert isinstance(each.source, Opaque)
        assert isinstance(each.source.form, Routed)
        forms.append(each.source.form)
    sizes = [(1, math.prod(each.shape[1:])) for each in routed]
    cols = int(shapes(sizes, steps)[-1][1])
    form = common_form(forms, whole_rows=whole or len(set(sizes)) > 1)
    result = Opaque(name, (operands[0].shape[0], cols), steps[-1].dtype, form)
    chain = Chain(len(routed), tuple(steps))
    model.kernels.append(RaggedMap(name, chain, [Operand(each, None) for each in routed], result))
    return View.of(result)


class Says(Enum):
    """What integers say of a choice of experts."""

    SORTED = "the experts of all tokens, sorted"
    ORDER = "the order that sorts the experts of all tokens"
    TOKENS = "the tokens, sorted by expert"
    COUNTS = "how many tokens each expert gets"
    OFFSETS = "where the tokens of each expert end"
    INVERSE = "where the sorted tokens were"


@dataclass(frozen=True)
class Control:
    """Integers that follow from a choice; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        routing: of the layer.
        indices: the experts of each token, [tokens, hits].
        says: what they are.
    """

    routing: Routing
    indices: View
    says: Says

    def __str__(self) -> str:
        """As messages show it."""
        return f"integers that data decide ({self.says.value})"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Complex numbers; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        reals: real and imaginary part of each, along a last dimension of 2.
    """

    reals: View

    def __str__(self) -> str:
        """As messages show it."""
        return "complex numbers"


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows in an order that is known; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        rows: of which they are taken, along their first dimension.
        order: which one each is.
        call: that takes them.
    """

    rows: View
    order: NDArray[np.int64]
    call: Call

    def __str__(self) -> str:
        """As messages show it."""
        return "rows in another order"


@dataclass(frozen=True)
class NoElements:
    """No numbers at all; the form of an ``Opaque`` that no kernel gives."""

    def __str__(self) -> str:
        """As messages show it."""
        return "a tensor without elements"


@dataclass(frozen=True, eq=False)
class Collected:
    """Routed rows in the order of the tokens; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        rows: routed.
        places: the expert of each row, [rows, 1].
        indices: the experts of each token, [tokens, hits]; None where they are known.
    """

    rows: View
    places: Callable[[], NDArray[np.int64]]
    indices: View | None

    def __str__(self) -> str:
        """As messages show it."""
        return "rows of tokens, one for each expert of a token"

"""Calls of routers, and calls that send rows of tokens to experts and add them up again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric import Layout
from operators.kernels.kernel import Operand
from operators.kernels.routed import Collect, Routed, Routing, form_of
from operators.kernels.tensors import Computed, Opaque, Stored, View
from operators.torch.call import Call
from operators.torch.calls.indexing import rows_by_data
from operators.torch.calls.ordering import sorted_along
from operators.torch.calls.tables import rows_of
from operators.torch.importing import Importing
from operators.torch.registry import imports, makes_whole
from operators.torch.routed_rows import (
    Collected,
    Control,
    Gathered,
    Meaning,
    deal,
    opaque_form,
    rows_operand,
)

_INDEXING = ("aten.index.Tensor", "aten.index_select.default")


@imports(*_INDEXING, of=Control)
def by_choice(importing: Importing, call: Call) -> View:
    """Index rows in the order of a choice: send them to experts, or back to tokens."""
    x = call.tensor()
    control = opaque_form(_index(importing, call))
    if not isinstance(control, Control):
        importing.unsupported(f"it is given {opaque_form(x)}: expected rows")
    routing = control.routing
    slots = partial(_slots, routing)
    name = importing.name_of(call)
    if control.meaning is Meaning.TOKENS and x.shape[0] == routing.tokens:
        return deal(importing.model, name, x, routing, routing.choice, control.indices)
    if control.meaning is Meaning.ORDER and x.shape[0] == routing.tokens * routing.hits:
        return deal(importing.model, name, x, routing, slots, control.indices)
    if control.meaning is Meaning.SORTED and isinstance(x.source, Stored):
        # A parameter has a row per expert. Each choice of a token reads the row of its expert.
        experts = control.indices.reshaped((routing.tokens * routing.hits,))
        parameters = rows_by_data(importing, call, x, [experts])
        return deal(importing.model, name, parameters, routing, slots, control.indices)
    if control.meaning is Meaning.INVERSE and isinstance(opaque_form(x), Routed):
        return _opaque(call, Collected(x, slots, control.indices))
    return importing.unsupported(
        f"it indexes {list(x.shape)} by {control}: expected rows of tokens or parameters of experts"
    )


@imports(*_INDEXING, of=Routed)
def by_known_places(importing: Importing, call: Call) -> View:
    """Index routed rows in a constant order."""
    x = call.tensor()
    order = importing.known(_index(importing, call))
    form = opaque_form(x)
    rows = form.routing.rows if isinstance(form, Routed) else None
    if order is None or rows is None:
        return by_choice(importing, call)
    places = None
    if np.array_equal(np.sort(order), np.arange(x.shape[0])):
        places = rows.places(np.argsort(order), len(order))
    if places is None:
        importing.unsupported(
            "it takes rows of experts in another order: expected each row once, in the expert's "
            "order"
        )
    return _opaque(call, Collected(x, lambda: places, None))


@imports(*_INDEXING)
def by_numbers(importing: Importing, call: Call) -> View:
    """Index rows in a constant order. A later call may send them to experts in this order."""
    x = call.tensor()
    indices = _indices(call)
    if len(indices) == 1 and len(x.shape) in (1, 2):
        order = importing.known(indices[0])
        if order is not None and order.ndim == 1 and order.dtype.kind in "iu":
            order = order.astype(np.int64)
            if order.size and -x.shape[0] <= order.min() <= order.max() < x.shape[0]:
                return _opaque(call, Gathered(x, order % x.shape[0], call))
    return rows_of(importing, call, x, indices)


@makes_whole(Gathered)
def from_memory(importing: Importing, view: View) -> View:
    form = opaque_form(view)
    assert isinstance(form, Gathered)
    return rows_of(importing, form.call, form.rows, _indices(form.call))


@imports("aten.sum.dim_IntList", of=Collected)
def add_up(importing: Importing, call: Call) -> View:
    x = call.tensor()
    form = opaque_form(x)
    assert isinstance(form, Collected)
    routing = form_of(form.rows.source).routing
    dims = [int(dim) % len(x.shape) for dim in call.args[1]]
    tokens, hits = routing.tokens, routing.hits
    if dims != [1] or x.shape[:2] != (tokens, hits) or call.result.dtype != x.dtype:
        importing.unsupported(
            f"it adds up dimensions {dims} of {list(x.shape)}, rows of tokens: expected dimension "
            f"1 of {[tokens, hits]} and more, in the type of the rows"
        )
    form = replace(form, places=partial(_by_token, form, tokens, hits))
    name, shape = importing.name_of(call), (tokens, *x.shape[2:])
    view = _collected(importing, name, form, shape, adds_up=True)
    return view.reshaped(call.result.shape)


@imports("aten.index_add.default", of=Routed)
def index_add(importing: Importing, call: Call) -> View:
    """Add rows of experts to a tensor of zeros with a row per token."""
    target, dim, index, x = call.args[:4]
    if int(dim) or call.argument(4, "alpha", 1) != 1:
        importing.unsupported("it adds experts' rows along columns, or scaled: expected whole rows")
    return _added(importing, call, target, index, x)


@imports("aten.index_put.default", of=Control)
@imports("aten.index_put.default", of=Routed)
def index_put(importing: Importing, call: Call) -> View:
    """Add rows of experts to a tensor of zeros with a row per token, or invert an order."""
    target, indices, x = call.args[:3]
    if not isinstance(opaque_form(x), Routed):
        return inverse(importing, call)
    if len(indices) != 1 or call.argument(3, "accumulate", False) is not True:
        importing.unsupported("it writes experts' rows to places that data decide: expected a sum")
    return _added(importing, call, target, indices[0], x)


def _added(importing: Importing, call: Call, target: View, index: View, x: View) -> View:
    """Add the routed rows of each token to zeros."""
    form, start = opaque_form(x), importing.known(target)
    if not isinstance(form, Routed) or start is None or start.any():
        importing.unsupported(
            "it adds rows of experts to others: expected zeros, one row per token"
        )
    routing = form.routing
    if x.dtype.itemsize < 4 and routing.hits > 2:
        importing.unsupported(
            f"it rounds to {x.dtype} after each of {routing.hits} sums: expected float32, or a sum "
            "over a dimension"
        )
    control, order = opaque_form(index), importing.known(index)
    if (
        isinstance(control, Control)
        and control.meaning is Meaning.TOKENS
        and control.routing is routing
    ):
        collected = Collected(x, routing.choice, control.indices)
    else:
        places = None
        if order is not None and routing.rows is not None:
            places = routing.rows.places(order, call.result.shape[0])
        if places is None:
            importing.unsupported("it adds rows by data: expected the tokens, sorted by expert")
        collected = Collected(x, lambda: places, None)
    name = importing.name_of(call)
    return _collected(importing, name, collected, call.result.shape, adds_up=True)


@makes_whole(Collected)
def token_by_token(importing: Importing, view: View) -> View:
    """Collect the rows of each token, one after the other."""
    form = opaque_form(view)
    assert isinstance(form, Collected)
    return _back(importing, view, form)


@makes_whole(Routed)
def by_expert(importing: Importing, view: View) -> View:
    """Collect the rows of each expert, one after the other, if their number is constant."""
    rows = form_of(view.source).routing.rows
    places = None if rows is None else rows.places(np.arange(view.shape[0]), view.shape[0])
    if places is None:
        importing.unsupported(
            "it is given rows of experts in numbers that data decide: expected them back in the "
            "order of the tokens"
        )
    return _back(importing, view, Collected(view, lambda: places, None))


def _back(importing: Importing, view: View, form: Collected) -> View:
    name = importing.model.name(f"{view.source.name}_back")
    return _collected(importing, name, form, view.shape, adds_up=False)


@imports("aten.view.default", "aten._unsafe_view.default", of=Gathered)
@imports("aten.unsqueeze.default", "aten.squeeze.dim", "aten.alias.default", of=Gathered)
@imports("aten.clone.default", "aten.detach.default", of=Gathered)
@imports("aten.view.default", "aten._unsafe_view.default", of=Collected)
def reshape(importing: Importing, call: Call) -> View:
    return call.tensor().reshaped(call.result.shape)


def _collected(
    importing: Importing, name: str, form: Collected, shape: tuple[int, ...], *, adds_up: bool
) -> View:
    cols = int(np.prod(shape[1:]))
    layout = Layout.tiled((shape[0], cols), (1, cols))
    routing = form_of(form.rows.source).routing
    indices = None if form.indices is None else rows_operand(form.indices, routing.hits)
    result = Computed(name, (shape[0], cols), form.rows.dtype, layout)
    rows = Operand(form.rows, None)
    kernel = Collect(name, routing, rows, form.places, indices, result, adds_up=adds_up)
    (view,) = importing.add(kernel)
    return view.reshaped(shape)


def _slots(routing: Routing) -> NDArray[np.int64]:
    """Return the expert of each choice of all tokens, [tokens * hits, 1]."""
    return routing.choice().reshape(-1, 1)


def _by_token(form: Collected, tokens: int, hits: int) -> NDArray[np.int64]:
    return form.places().reshape(tokens, hits)


def _opaque(call: Call, form: object) -> View:
    return View.of(Opaque(call.name, call.result.shape, call.result.dtype, form))


def _index(importing: Importing, call: Call) -> View:
    indices = _indices(call)
    if len(indices) != 1 or not isinstance(indices[0], View) or len(indices[0].shape) != 1:
        importing.unsupported("it indexes several dimensions: expected rows, by a row of integers")
    index: View = indices[0]
    return index


def _indices(call: Call) -> list[Any]:
    """Return the index of each dimension of a call; None for a whole dimension."""
    if call.target == "aten.index_select.default":
        _, dim, index = call.args
        return [None] * (int(dim) % len(call.tensor().shape)) + [index]
    return list(call.args[1])


@imports("aten.sort.default", "aten.sort.stable")
def sort(importing: Importing, call: Call) -> tuple[View | None, View]:
    """Sort numbers. A row of integers is assumed to be the experts of tokens."""
    x = call.tensor()
    if x.dtype.kind not in "iu" or len(x.shape) != 1:
        return sorted_along(importing, call)
    shape = x.steps[-1][1] if x.steps else x.shape
    hits = shape[-1] if len(shape) > 1 else 1
    tokens = x.shape[0] // hits
    number = len(importing.routings)
    choice = importing.choice_of(number, call.name, tokens, hits)
    routing = Routing(number, tokens, hits, choice, f"routing[{number}]")
    importing.routings.append(routing)
    indices = x.reshaped((tokens, hits))
    return (
        _control(call, 0, Control(routing, indices, Meaning.SORTED)),
        _control(call, 1, Control(routing, indices, Meaning.ORDER)),
    )


@imports("aten.sort.default", "aten.sort.stable", of=Control)
def sort_again(importing: Importing, call: Call) -> tuple[None, View]:
    order = _given(importing, call, Meaning.ORDER)
    return None, _control(call, 1, replace(order, meaning=Meaning.INVERSE))


@imports("aten.floor_divide.default", "aten.div.Tensor_mode", "aten.div.Scalar_mode", of=Control)
@imports("aten.__rshift__.Scalar", of=Control)
def token_of(importing: Importing, call: Call) -> View:
    """Divide the order by the experts per token. The result is the tokens, sorted by expert."""
    order = _given(importing, call, Meaning.ORDER)
    divisor = call.args[1]
    known = importing.known(divisor)
    by = int(divisor if known is None else known)
    if call.target == "aten.__rshift__.Scalar":
        by = 2**by
    if by != order.routing.hits or call.kwargs.get("rounding_mode", "floor") is None:
        importing.unsupported(
            f"it divides {Meaning.ORDER.value} by {by}: expected {order.routing.hits}, the experts "
            "of a token, rounded down"
        )
    return _control(call, 0, replace(order, meaning=Meaning.TOKENS))


@imports("aten._to_copy.default", "aten.clone.default", of=Control)
def same_integers(importing: Importing, call: Call) -> View:
    """Return the integers unchanged: the new type holds them."""
    return _control(call, 0, call.args[0].source.form)


@imports("aten.histc.default", of=Control)
def count(importing: Importing, call: Call) -> View:
    experts = _given(importing, call, Meaning.SORTED)
    bins = int(call.argument(1, "bins", 100))
    ends = call.argument(2, "min", 0), call.argument(3, "max", 0)
    if ends != (0, bins - 1):
        importing.unsupported(
            f"it counts experts from {ends[0]} to {ends[1]}: expected 0 to {bins - 1}"
        )
    experts.routing.experts = bins
    return _control(call, 0, replace(experts, meaning=Meaning.COUNTS))


@imports("aten.cumsum.default", of=Control)
def end(importing: Importing, call: Call) -> View:
    counts = _given(importing, call, Meaning.COUNTS)
    return _control(call, 0, replace(counts, meaning=Meaning.OFFSETS))


@imports("aten.scatter.src", of=Control)
def inverse(importing: Importing, call: Call) -> View:
    """Invert an order: scatter ascending numbers to its places. Each place occurs once."""
    target, *others = call.args[:3] if call.target == "aten.index_put.default" else call.args
    where, numbers = others[-2:]
    (where,) = where if isinstance(where, list | tuple) else (where,)
    form = opaque_form(where)
    known = importing.known(numbers)
    if (
        not isinstance(form, Control)
        or form.meaning is not Meaning.ORDER
        or known is None
        or not np.array_equal(np.broadcast_to(known, where.shape), np.arange(where.shape[0]))
        or target.shape != where.shape
        or call.argument(3, "accumulate", False) is True
    ):
        importing.unsupported("it puts numbers by data: expected the inverse of an order")
    return _control(call, 0, replace(form, meaning=Meaning.INVERSE))


@imports("aten.view.default", "aten.alias.default", "aten.detach.default", of=Control)
def reshape_choice(importing: Importing, call: Call) -> View:
    x: View = call.args[0]
    if len(call.result.shape) != len(x.shape):
        importing.unsupported(f"it is given {opaque_form(x)}: expected a single row")
    return x


def _given(importing: Importing, call: Call, meaning: Meaning) -> Control:
    """Return the integers of a call's argument, which must have this meaning."""
    view: View = call.args[0] if isinstance(call.args[0], View) else call.args[1]
    form = opaque_form(view)
    if not isinstance(form, Control) or form.meaning is not meaning:
        importing.unsupported(f"it is given {form}: expected {meaning.value}")
    return form


def _control(call: Call, result: int, form: Control) -> View:
    spec = call.results[result]
    return View.of(Opaque(f"{call.name}_{result}", spec.shape, spec.dtype, form))

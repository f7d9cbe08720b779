"""Calls of routers, and on rows of tokens at their experts: choices, grouped products, sums."""

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
from operators.torch.routed_rows import Collected, Control, Gathered, Meaning, deal, rows_operand

_INDEXING = ("aten.index.Tensor", "aten.index_select.default")


@imports(*_INDEXING, of=Control)
def by_choice(importing: Importing, call: Call) -> View:
    """Rows in the order of a choice: to experts, or back to tokens."""
    x = call.tensor()
    index = _index(importing, call)
    control = _form(index)
    if not isinstance(control, Control):
        importing.unsupported(f"it is given {_form(x)}: expected rows")
    routing = control.routing
    slots = partial(_slots, routing)
    name = importing.name_of(call)
    if control.meaning is Meaning.TOKENS and x.shape[0] == routing.tokens:
        return deal(importing.model, name, x, routing, routing.choice, control.indices)
    if control.meaning is Meaning.ORDER and x.shape[0] == routing.tokens * routing.hits:
        return deal(importing.model, name, x, routing, slots, control.indices)
    if control.meaning is Meaning.SORTED and isinstance(x.source, Stored):
        # A parameter per expert: each place of a token takes its expert's row.
        places = control.indices.reshaped((routing.tokens * routing.hits,))
        own = rows_by_data(importing, call, x, [places])
        return deal(importing.model, name, own, routing, slots, control.indices)
    if control.meaning is Meaning.INVERSE and isinstance(_form(x), Routed):
        return _opaque(call, Collected(x, slots, control.indices))
    return importing.unsupported(
        f"it takes rows by {control}: expected tokens, or what belongs to their experts"
    )


@imports(*_INDEXING, of=Routed)
def by_known_places(importing: Importing, call: Call) -> View:
    """Routed rows in a constant order."""
    x = call.tensor()
    order = importing.known(_index(importing, call))
    form = _form(x)
    known = form.routing.rows if isinstance(form, Routed) else None
    if order is None or known is None:
        return by_choice(importing, call)
    places = None
    if np.array_equal(np.sort(order), np.arange(x.shape[0])):
        places = known.places(np.argsort(order), len(order))
    if places is None:
        importing.unsupported(
            "it takes rows of experts in another order: expected each row once, in the expert's "
            "order"
        )
    return _opaque(call, Collected(x, lambda: places, None))


@imports(*_INDEXING)
def by_numbers(importing: Importing, call: Call) -> View:
    """Rows in a constant order, which may turn out to sort them by expert."""
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
    """Rows of a stored tensor, loaded in another order."""
    form = _form(view)
    assert isinstance(form, Gathered)
    return rows_of(importing, form.call, form.rows, _indices(form.call))


@imports("aten.sum.dim_IntList", of=Collected)
def add_up(importing: Importing, call: Call) -> View:
    """The sum of a token's rows from its experts."""
    x = call.tensor()
    form = _form(x)
    assert isinstance(form, Collected)
    routing = form_of(form.rows.source).routing
    dims = [int(dim) % len(x.shape) for dim in call.args[1]]
    tokens, hits = routing.tokens, routing.hits
    if dims != [1] or x.shape[:2] != (tokens, hits) or call.result.dtype != x.dtype:
        importing.unsupported(
            f"it adds up dimensions {dims} of {list(x.shape)}, rows of tokens: expected dimension "
            f"1 of {[tokens, hits]} and more, in the type of the rows"
        )
    places = partial(_by_token, form, tokens, hits)
    name = importing.name_of(call)
    view = _collected(importing, name, form, places, (tokens, *x.shape[2:]), adds_up=True)
    return view.reshaped(call.result.shape)


@imports("aten.index_add.default", of=Routed)
def index_add(importing: Importing, call: Call) -> View:
    """Rows of experts added to the zeros of their tokens."""
    target, dim, index, x = call.args[:4]
    if int(dim) or call.argument(4, "alpha", 1) != 1:
        importing.unsupported("it adds experts' rows along columns, or scaled: expected whole rows")
    return _added(importing, call, target, index, x)


@imports("aten.index_put.default", of=Control)
@imports("aten.index_put.default", of=Routed)
def index_put(importing: Importing, call: Call) -> View:
    """Rows of experts added to the zeros of their tokens; or the inverse of an order."""
    target, indices, x = call.args[:3]
    if not isinstance(_form(x), Routed):
        return inverse(importing, call)
    if len(indices) != 1 or call.argument(3, "accumulate", False) is not True:
        importing.unsupported("it writes experts' rows to places that data decide: expected a sum")
    return _added(importing, call, target, indices[0], x)


def _added(importing: Importing, call: Call, target: View, index: View, x: View) -> View:
    """Return zeros to which the routed rows of each token are added."""
    form, start = _form(x), importing.known(target)
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
    control, order = _form(index), importing.known(index)
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
    name, shape = importing.name_of(call), call.result.shape
    return _collected(importing, name, collected, collected.places, shape, adds_up=True)


@makes_whole(Collected)
def one_after_the_other(importing: Importing, view: View) -> View:
    """Every row of a token, one after the other."""
    form = _form(view)
    assert isinstance(form, Collected)
    return _back(importing, view, form)


@makes_whole(Routed)
def by_expert(importing: Importing, view: View) -> View:
    """Rows of experts one after the other, if the number of each expert's rows is constant."""
    known = form_of(view.source).routing.rows
    places = None if known is None else known.places(np.arange(view.shape[0]), view.shape[0])
    if places is None:
        importing.unsupported(
            "it is given rows of experts in numbers that data decide: expected them back in the "
            "order of the tokens"
        )
    return _back(importing, view, Collected(view, lambda: places, None))


def _back(importing: Importing, view: View, form: Collected) -> View:
    name = importing.model.name(f"{view.source.name}_back")
    return _collected(importing, name, form, form.places, view.shape, adds_up=False)


@imports("aten.view.default", "aten._unsafe_view.default", of=Gathered)
@imports("aten.unsqueeze.default", "aten.squeeze.dim", "aten.alias.default", of=Gathered)
@imports("aten.clone.default", "aten.detach.default", of=Gathered)
@imports("aten.view.default", "aten._unsafe_view.default", of=Collected)
def reshape(importing: Importing, call: Call) -> View:
    """The same rows under other dimensions."""
    return call.tensor().reshaped(call.result.shape)


def _collected(
    importing: Importing,
    name: str,
    form: Collected,
    places: Any,
    shape: tuple[int, ...],
    *,
    adds_up: bool,
) -> View:
    cols = int(np.prod(shape[1:]))
    layout = Layout.tiled((shape[0], cols), (1, cols))
    routing = form_of(form.rows.source).routing
    indices = None if form.indices is None else rows_operand(form.indices, routing.hits)
    result = Computed(name, (shape[0], cols), form.rows.dtype, layout)
    rows = Operand(form.rows, None)
    (view,) = importing.add(Collect(name, routing, rows, places, indices, result, adds_up=adds_up))
    return view.reshaped(shape)


def _slots(routing: Routing) -> NDArray[np.int64]:
    """The expert of each place among the places of all tokens, [tokens * hits, 1]."""
    return routing.choice().reshape(-1, 1)


def _by_token(form: Collected, tokens: int, hits: int) -> NDArray[np.int64]:
    return form.places().reshape(tokens, hits)


def _form(view: object) -> object:
    return view.source.form if isinstance(view, View) and isinstance(view.source, Opaque) else None


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
    """Numbers sorted; for a row of integers, the experts of tokens, their meaning."""
    chosen = call.tensor()
    if chosen.dtype.kind not in "iu" or len(chosen.shape) != 1:
        return sorted_along(importing, call)
    shape = chosen.steps[-1][1] if chosen.steps else chosen.shape
    hits = shape[-1] if len(shape) > 1 else 1
    tokens = chosen.shape[0] // hits
    number = len(importing.routings)
    choice = importing.choice_of(number, call.name, tokens, hits)
    routing = Routing(number, tokens, hits, choice, f"routing[{number}]")
    importing.routings.append(routing)
    indices = chosen.reshaped((tokens, hits))
    return (
        _control(call, 0, Control(routing, indices, Meaning.SORTED)),
        _control(call, 1, Control(routing, indices, Meaning.ORDER)),
    )


@imports("aten.sort.default", "aten.sort.stable", of=Control)
def sort_again(importing: Importing, call: Call) -> tuple[None, View]:
    """The order that undoes an order: sorting it."""
    given = _given(importing, call, Meaning.ORDER)
    return None, _control(call, 1, replace(given, meaning=Meaning.INVERSE))


@imports("aten.floor_divide.default", "aten.div.Tensor_mode", "aten.div.Scalar_mode", of=Control)
@imports("aten.__rshift__.Scalar", of=Control)
def token_of(importing: Importing, call: Call) -> View:
    """The token of each place among the experts of all tokens."""
    given = _given(importing, call, Meaning.ORDER)
    divisor = call.args[1]
    known = importing.known(divisor)
    by = int(divisor if known is None else known)
    if call.target == "aten.__rshift__.Scalar":
        by = 2**by
    if by != given.routing.hits or call.kwargs.get("rounding_mode", "floor") is None:
        importing.unsupported(
            f"it divides {Meaning.ORDER.value} by {by}: expected {given.routing.hits}, the experts "
            "of a token, rounded down"
        )
    return _control(call, 0, replace(given, meaning=Meaning.TOKENS))


@imports("aten._to_copy.default", "aten.clone.default", of=Control)
def same_integers(importing: Importing, call: Call) -> View:
    """Integers as another type of numbers that holds them."""
    return _control(call, 0, call.args[0].source.form)


@imports("aten.histc.default", of=Control)
def count(importing: Importing, call: Call) -> View:
    """The number of each expert's tokens."""
    given = _given(importing, call, Meaning.SORTED)
    bins = int(call.argument(1, "bins", 100))
    ends = call.argument(2, "min", 0), call.argument(3, "max", 0)
    if ends != (0, bins - 1):
        importing.unsupported(
            f"it counts experts from {ends[0]} to {ends[1]}: expected 0 to {bins - 1}"
        )
    given.routing.experts = bins
    return _control(call, 0, replace(given, meaning=Meaning.COUNTS))


@imports("aten.cumsum.default", of=Control)
def end(importing: Importing, call: Call) -> View:
    """The end of each expert's tokens."""
    given = _given(importing, call, Meaning.COUNTS)
    return _control(call, 0, replace(given, meaning=Meaning.OFFSETS))


@imports("aten.scatter.src", of=Control)
def inverse(importing: Importing, call: Call) -> View:
    """The inverse of an order, by scattering the places to the order; it covers all places."""
    target, *others = call.args[:3] if call.target == "aten.index_put.default" else call.args
    where, numbers = others[-2:]
    (where,) = where if isinstance(where, list | tuple) else (where,)
    form = _form(where)
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
        importing.unsupported(f"it is given {x.source.form}: expected a single row")  # type: ignore[attr-defined]
    return x


def _given(importing: Importing, call: Call, meaning: Meaning) -> Control:
    """Return the integers of a call's argument; refuse another meaning than ``meaning``."""
    view: View = call.args[0] if isinstance(call.args[0], View) else call.args[1]
    form = _form(view)
    if not isinstance(form, Control) or form.meaning is not meaning:
        importing.unsupported(f"it is given {form}: expected {meaning.value}")
    return form


def _control(call: Call, result: int, form: Control) -> View:
    spec = call.results[result]
    return View.of(Opaque(f"{call.name}_{result}", spec.shape, spec.dtype, form))

"""Calls of routers: what models compute of the choice of experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from operators.kernels.routing import Routing
from operators.kernels.tensors import Opaque, View
from operators.torch.call import Call
from operators.torch.calls.ordering import sorted_along
from operators.torch.importing import Importing
from operators.torch.registry import imports
from operators.torch.routes import Control, Says

__all__ = ["inverse"]


@imports("aten.sort.default", "aten.sort.stable")
def sort(importing: Importing, call: Call) -> tuple[View | None, View]:
    """Numbers sorted; of a row of integers, the experts of tokens, what they say of the choice."""
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
        _control(call, 0, Control(routing, indices, Says.SORTED)),
        _control(call, 1, Control(routing, indices, Says.ORDER)),
    )


@imports("aten.sort.default", "aten.sort.stable", of=Control)
def sort_again(importing: Importing, call: Call) -> tuple[None, View]:
    """The order that undoes an order: sorting it."""
    given = _given(importing, call, Says.ORDER)
    return None, _control(call, 1, replace(given, says=Says.INVERSE))


@imports(
    "aten.floor_divide.default",
    "aten.div.Tensor_mode",
    "aten.div.Scalar_mode",
    "aten.__rshift__.Scalar",
    of=Control,
)
def token_of(importing: Importing, call: Call) -> View:
    """The token of each place among the experts of all tokens."""
    given = _given(importing, call, Says.ORDER)
    divisor = call.args[1]
    known = importing.known(divisor)
    by = int(divisor if known is None else known)
    if call.target == "aten.__rshift__.Scalar":
        by = 2**by
    if by != given.routing.hits or call.kwargs.get("rounding_mode", "floor") is None:
        importing.unsupported(
            f"it divides {Says.ORDER.value} by {by}: expected {given.routing.hits}, the experts of "
            "a token, rounded down"
        )
    return _control(call, 0, replace(given, says=Says.TOKENS))


@imports("aten._to_copy.default", "aten.to.dtype", "aten.clone.default", of=Control)
def same_integers(importing: Importing, call: Call) -> View:
    """Integers as another type of numbers that holds them."""
    del importing
    form = call.args[0].source.form
    return _control(call, 0, form)


@imports("aten.histc.default", of=Control)
def count(importing: Importing, call: Call) -> View:
    """How many tokens each expert gets."""
    given = _given(importing, call, Says.SORTED)
    bins = int(call.argument(1, "bins", 100))
    ends = call.argument(2, "min", 0), call.argument(3, "max", 0)
    if ends != (0, bins - 1):
        importing.unsupported(
            f"it counts experts from {ends[0]} to {ends[1]}: expected 0 to {bins - 1}"
        )
    given.routing.experts = bins
    return _control(call, 0, replace(given, says=Says.COUNTS))


@imports("aten.cumsum.default", of=Control)
def end(importing: Importing, call: Call) -> View:
    """Where the tokens of each expert end."""
    given = _given(importing, call, Says.COUNTS)
    return _control(call, 0, replace(given, says=Says.OFFSETS))


@imports("aten.scatter.src", of=Control)
def scatter(importing: Importing, call: Call) -> View:
    """The inverse of an order."""
    return inverse(importing, call)


def inverse(importing: Importing, call: Call) -> View:
    """The order that undoes an order: its places, put where it says; it leaves none out."""
    target, *others = call.args[:3] if call.target == "aten.index_put.default" else call.args
    where, numbers = others[-2:]
    (where,) = where if isinstance(where, list | tuple) else (where,)
    form = where.source.form if isinstance(where.source, Opaque) else None
    known = importing.known(numbers)
    if (
        not isinstance(form, Control)
        or form.says is not Says.ORDER
        or known is None
        or not np.array_equal(np.broadcast_to(known, where.shape), np.arange(where.shape[0]))
        or target.shape != where.shape
        or call.argument(3, "accumulate", False) is True
    ):
        importing.unsupported("it puts numbers by data: expected the inverse of an order")
    return _control(call, 0, replace(form, says=Says.INVERSE))


@imports(
    "aten.view.default",
    "aten.reshape.default",
    "aten.alias.default",
    "aten.detach.default",
    of=Control,
)
def reshape(importing: Importing, call: Call) -> View:
    """The same integers."""
    x: View = call.args[0]
    if len(call.result.shape) != len(x.shape):
        importing.unsupported(f"it is given {x.source.form}: expected one row of them")  # type: ignore[attr-defined]
    return x


def _given(importing: Importing, call: Call, says: Says) -> Control:
    """Return the integers a call is given, which have to say what it can do something with."""
    view: View = call.args[0] if isinstance(call.args[0], View) else call.args[1]
    form = view.source.form if isinstance(view.source, Opaque) else None
    if not isinstance(form, Control) or form.says is not says:
        importing.unsupported(f"it is given {form}: expected {says.value}")
    return form


def _control(call: Call, result: int, form: Control) -> View:
    spec = call.results[result]
    return View.of(Opaque(f"{call.name}_{result}", spec.shape, spec.dtype, form))

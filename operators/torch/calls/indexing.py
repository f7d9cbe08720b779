"""Calls that write numbers to places, or read them from places.

Constant places are part of the plan. If data decide the places, each tile holds the whole indexed
dimension.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from operators.functions.ordering import Picked, Put, Putting
from operators.kernels.recurrence import Reversed
from operators.kernels.schedule import fit
from operators.kernels.tensors import Computed, Stored, View
from operators.torch.call import Call
from operators.torch.calls.elementwise import pointwise
from operators.torch.importing import Importing
from operators.torch.registry import imports


@imports("aten.gather.default")
def gather(importing: Importing, call: Call) -> View:
    x, dim, places = call.args[:3]
    if not places.shape:
        x, places = x.reshaped((1,)), places.reshaped((1,))
    dim %= len(x.shape)
    for each, size in enumerate(places.shape):
        if each != dim:
            x = importing.part(call, x, each, 0, size)
    sizes = (places.shape[dim],)
    read = importing.along(call, (x, places), (dim,), Picked(), sizes, call.result.dtype)
    return read.reshaped(call.result.shape)


_REDUCING: Final[dict[str, Putting]] = {
    "add": "sum",
    "amax": "amax",
    "amin": "amin",
    "multiply": "prod",
    "prod": "prod",
    "sum": "sum",
}


@imports("aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default")
@imports("aten.scatter.reduce", "aten.scatter.value_reduce", "aten.scatter_reduce.two")
def scatter(importing: Importing, call: Call) -> View:
    x, dim, places, numbers = call.args[:4]
    reducing = call.argument(4, "reduce")
    name: Putting = "sum" if "scatter_add" in call.target else "set"
    if reducing is not None:
        name = _REDUCING.get(reducing, "set")
        if name == "set" or not call.argument(5, "include_self", True):
            importing.unsupported("expected a sum, product or extreme with the present numbers")
    if not isinstance(numbers, View):
        numbers = importing.filled(f"{call.name}_value", (), x.dtype, numbers)
    if not x.shape:
        x, places = x.reshaped((1,)), places.reshaped(places.shape or (1,))
    numbers = _at_first(numbers, places.shape)
    put = _put(importing, call, x, dim % len(x.shape), places, numbers, name)
    return put.reshaped(call.result.shape)


def _at_first(numbers: View, shape: tuple[int, ...]) -> View:
    """Cut numbers to ``shape``, from the first on; a single number is repeated for all places."""
    if len(numbers.shape) != len(shape) or math.prod(numbers.shape) == 1:
        return numbers.reshaped((1,) * len(shape)).expanded(shape)
    for dim, size in enumerate(shape):
        numbers = numbers.sliced(dim, 0, size)
    return numbers


def _put(
    importing: Importing, call: Call, x: View, dim: int, places: View, numbers: View, name: Putting
) -> View:
    """Write numbers to places along ``dim``. Along other dimensions, they fill the first places."""
    for each, size in enumerate(places.shape):
        if each != dim and size < x.shape[each]:
            first, rest = x.sliced(each, 0, size), x.sliced(each, size, x.shape[each] - size)
            first = _put(importing, call, first, dim, places, numbers, name)
            return importing.joined(call, [first, rest], each)
    operands = (x, places, numbers)
    return importing.along(call, operands, (dim,), Put(name), (x.shape[dim],), call.result.dtype)


def rows_by_data(importing: Importing, call: Call, x: View, index: list[Any]) -> View:
    """Plan ``x[index]`` for data-dependent places of one dimension, which is whole in a tile."""
    dims = [dim for dim, each in enumerate(index) if each is not None]
    if len(dims) != 1:
        importing.unsupported(
            "data decide places of several dimensions: expected places of one, or constant ones"
        )
    (dim,) = dims
    places = index[dim]
    if places.dtype.kind not in "iu":
        importing.unsupported(
            "data decide which places there are: expected integers that name them"
        )
    order = (dim, *(each for each in range(len(x.shape)) if each != dim))
    rest = tuple(x.shape[each] for each in order[1:])
    size, cols = x.shape[dim], math.prod(rest)
    count = math.prod(places.shape)
    rows = fit(count, importing.schedule.tile_rows)
    table = x.permuted(order).reshaped((1, size, cols)).expanded((count // rows, size, cols))
    named = places.reshaped((count // rows, rows, 1)).expanded((count // rows, rows, cols))
    read = importing.along(call, (table, named), (1,), Picked(), (rows,), x.dtype)
    return in_place(read, places.shape, rest, dim)


def in_place(rows: View, places: tuple[int, ...], rest: tuple[int, ...], first: int) -> View:
    """Return rows with the dimensions of ``places`` moved to begin at dimension ``first``."""
    rank = len(places)
    return rows.reshaped((*places, *rest)).permuted(
        (*range(rank, rank + first), *range(rank), *range(rank + first, rank + len(rest)))
    )


def flat_places(
    importing: Importing, numbers: list[NDArray[np.int64]], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the row numbers of places in several dimensions."""
    rows = np.zeros((), np.int64)
    for places, size in zip(np.broadcast_arrays(*numbers), sizes, strict=True):
        wrong = places[(places < -size) | (places >= size)]
        if wrong.size:
            importing.unsupported(
                f"place {wrong.max()} of {size}: expected numbers of {-size} to {size - 1}"
            )
        rows = rows * size + places % size
    if not rows.size:
        importing.unsupported("it has no places: expected at least one")
    return rows


@imports("aten.index_put.default", "aten._unsafe_index_put.default")
def put_at(importing: Importing, call: Call) -> View:
    """Plan ``x[index] = numbers``, or ``x[index] += numbers``."""
    x, index, numbers = call.args[:3]
    adds_up = bool(call.argument(3, "accumulate", False))
    dims = [dim for dim, each in enumerate(index) if each is not None]
    if dims != list(range(dims[0], dims[-1] + 1)):
        importing.unsupported("expected neighbouring dimensions to be indexed")
    first = dims[0]
    indices = [index[dim] for dim in dims]
    if len(indices) == 1 and indices[0].dtype == np.bool_:
        return _masked(importing, call, x, first, indices[0], numbers, adds_up=adds_up)
    sizes = x.shape[first : first + len(dims)]
    lead, rest = x.shape[:first], x.shape[first + len(dims) :]
    named = np.broadcast_shapes(*(each.shape for each in indices))
    order = (*dims, *range(first), *range(dims[-1] + 1, len(x.shape)))
    cols = math.prod(lead) * math.prod(rest)
    table = x.permuted(order).reshaped((math.prod(sizes), cols))
    # The dimensions of places replace the indexed dimensions.
    numbers = numbers.expanded((*lead, *named, *rest))
    middle = tuple(range(first, first + len(named)))
    others = (each for each in range(len(numbers.shape)) if each not in middle)
    count = math.prod(named)
    rows = numbers.permuted((*middle, *others)).reshaped((count, cols))
    known = [importing.known(each) for each in indices]
    if all(each is not None for each in known):
        exact = [each.astype(np.int64) for each in known if each is not None]
        flat = flat_places(importing, exact, sizes).reshape(-1)
        if not adds_up:
            which = np.arange(table.shape[0])
            which[flat] = table.shape[0] + np.arange(count)
            joined = importing.joined(call, [table, rows], 0)
            return _back(importing.taken(call, joined, 0, which.tolist()), x, order)
        at = View.of(Stored.of(f"{call.name}_places", (count, 1), flat.dtype, lambda: flat))
    elif len(indices) == 1:
        at = indices[0].reshaped((count, 1))
    else:
        importing.unsupported(
            "data decide places of several dimensions: expected places of one, or constant ones"
        )
    name: Putting = "sum" if adds_up else "set"
    put = _put(importing, call, table, 0, at.expanded((count, cols)), rows, name)
    return _back(put, x, order)


def _back(table: View, x: View, order: tuple[int, ...]) -> View:
    """Return ``table`` in the shape of ``x``. Its dimensions are those of ``x`` in ``order``."""
    ordered = table.reshaped([x.shape[dim] for dim in order])
    return ordered.permuted([order.index(dim) for dim in range(len(order))])


def _masked(
    importing: Importing,
    call: Call,
    x: View,
    first: int,
    mask: View,
    numbers: View,
    *,
    adds_up: bool,
) -> View:
    behind = x.shape[first + len(mask.shape) :]
    try:
        fits = np.broadcast_shapes(numbers.shape, behind) == behind
    except ValueError:
        fits = False
    if adds_up or not fits:
        importing.unsupported(
            "it writes several numbers to the places of a mask: expected one number for all"
        )
    wide = mask.reshaped((*mask.shape, *(1 for _ in behind)))
    return pointwise(importing, call, "where", wide, numbers, x)


@imports("aten.copy.default")
def copied(importing: Importing, call: Call) -> View:
    x = call.tensor(1).expanded(call.result.shape)
    return x if x.dtype == call.result.dtype else pointwise(importing, call, "copy", x)


@imports("aten.slice_scatter.default", "aten.select_scatter.default")
def put_slice(importing: Importing, call: Call) -> View:
    """Replace some places of a dimension."""
    x, numbers = call.tensor(), call.tensor(1)
    dim = call.dimension(2, 0)
    size = x.shape[dim]
    if call.target == "aten.select_scatter.default":
        places = range(call.args[3] % size, call.args[3] % size + 1)
        numbers = numbers.reshaped((*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    else:
        ends = call.argument(3, "start"), call.argument(4, "end")
        places = range(size)[slice(*ends, call.argument(5, "step", 1))]
    if not places:
        return x
    if places.step == 1:
        behind = size - places.stop
        parts = [(x, 0, places.start), (numbers, 0, len(places)), (x, places.stop, behind)]
        views = [importing.part(call, each, dim, at, many) for each, at, many in parts if many]
        return importing.joined(call, views, dim)
    which = list(range(size))
    for number, place in enumerate(places):
        which[place] = size + number
    return importing.taken(call, importing.joined(call, [x, numbers], dim), dim, which)


@imports("aten.flip.default")
def flip(importing: Importing, call: Call) -> View:
    x = call.tensor()
    for dim in (each % len(x.shape) for each in call.args[1]):
        if dim == 0 and isinstance(x.source, Computed) and len(x.shape) > 1:
            (x,) = importing.add(Reversed(importing.name_of(call), x, importing.schedule.tile_rows))
        else:
            x = importing.taken(call, x, dim, range(x.shape[dim])[::-1])
    return x


@imports("aten.roll.default")
def roll(importing: Importing, call: Call) -> View:
    """Shift places along dimensions. The last places move to the front."""
    x = call.tensor()
    shape, shifts, dims = x.shape, call.args[1], call.argument(2, "dims", None)
    shifts = [shifts] if isinstance(shifts, int) else shifts
    if not dims:
        x, dims = x.reshaped((math.prod(shape),)), [0]
    for shift, named in zip(shifts, dims, strict=True):
        dim = named % len(x.shape)
        size = x.shape[dim]
        first = -shift % size
        if not first:
            continue
        if isinstance(x.source, Stored) or dim == len(x.shape) - 1:
            x = importing.taken(call, x, dim, [(at + first) % size for at in range(size)])
        else:
            parts = (x.sliced(dim, first, size - first), x.sliced(dim, 0, first))
            x = importing.joined(call, parts, dim)
    return x.reshaped(shape)


@imports("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(importing: Importing, call: Call) -> View:
    """Read the numbers whose places in two dimensions differ by ``offset``."""
    x = call.tensor()
    rank = len(x.shape)
    offset = call.argument(1, "offset", 0)
    one, two = call.argument(2, "dim1", 0) % rank, call.argument(3, "dim2", 1) % rank
    others = [dim for dim in range(rank) if dim not in (one, two)]
    rows, cols = x.shape[one], x.shape[two]
    flat = x.permuted((*others, one, two))
    flat = flat.reshaped((*flat.shape[:-2], rows * cols))
    first = (max(0, -offset), max(0, offset))
    places = [(first[0] + at) * cols + first[1] + at for at in range(call.result.shape[-1])]
    return importing.taken(call, flat, len(others), places)


@imports("aten.repeat.default")
def repeat(importing: Importing, call: Call) -> View:
    """Repeat the whole tensor along each dimension."""
    x, times = call.tensor(), call.args[1]
    shape = (1,) * (len(times) - len(x.shape)) + x.shape
    x = x.reshaped(shape)
    for dim, count in enumerate(times):
        if count > 1 and x.shape[dim] == 1:
            x = x.expanded((*x.shape[:dim], count, *x.shape[dim + 1 :]))
        elif count > 1:
            x = importing.taken(call, x, dim, list(range(x.shape[dim])) * count)
    return x

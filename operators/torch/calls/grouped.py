"""Grouped products: routed rows times the weights of their experts, and parts of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabric import dtype_named
from fabric.extend import block_format
from operators.functions.steps import Columns
from operators.kernels.grouped import GroupedProduct
from operators.kernels.kernel import Operand
from operators.kernels.routed import KnownRows, Pack, Packing, Routed, Routing, Spread, form_of
from operators.kernels.schedule import fit
from operators.kernels.tensors import Opaque, Stored, View
from operators.tiles.tensor import Tensor
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports
from operators.torch.routed_rows import (
    Control,
    Gathered,
    Meaning,
    on_routed_rows,
    opaque_form,
    to_experts,
)

_PRODUCTS = (
    "aten._grouped_mm.default",
    "aten.grouped_mm.default",
    "transformers.grouped_mm_fallback.default",
)


@imports(*_PRODUCTS)
@imports(*_PRODUCTS, of=Gathered)
@imports(*_PRODUCTS, of=Routed)
@imports(*_PRODUCTS, of=Control)
def grouped_product(importing: Importing, call: Call) -> View:
    rows, weights = call.tensor(0), call.tensor(1)
    offsets = call.argument(2, "offs")
    if call.argument(3, "bias") is not None:
        importing.unsupported("it adds a bias: expected a product without a bias")
    if len(rows.shape) != 2 or len(weights.shape) != 3 or call.result.dtype != rows.dtype:
        importing.unsupported(
            f"it multiplies {list(rows.shape)} and {list(weights.shape)}: expected rows [S, K] and "
            "weights [groups, K, N], and a result in the type of the rows"
        )
    if not isinstance(weights.source, Stored):
        importing.unsupported("its weights are computed: expected weights that depend on no data")
    routed = _routed(importing, call, rows, offsets, weights.shape[0])
    (result,) = _multiplied(importing, importing.name_of(call), routed, [weights])
    importing.products[result.source] = routed, weights
    return result


@imports("aten.split.Tensor", "aten.split_with_sizes.default", of=Routed)
def split(importing: Importing, call: Call) -> tuple[View, ...]:
    """Plan one product per block of columns, with the same columns of the weights."""
    dim = call.argument(2, "dim", 0)
    return _parts(importing, call, dim, 0, [each.shape[-1] for each in call.results])


@imports("aten.slice.Tensor", of=Routed)
def sliced(importing: Importing, call: Call) -> View:
    """Take columns of routed rows. A grouped product is planned with fewer columns of weights."""
    x, size = call.tensor(), call.tensor().shape[-1]
    dim, first = call.argument(1, "dim", 0), call.argument(2, "start") or 0
    step = call.argument(4, "step", 1)
    first = max(first + size, 0) if first < 0 else min(first, size)
    count = call.result.shape[-1]
    if x.source in importing.products and step == 1:
        (result,) = _parts(importing, call, dim, first, [count])
        return result
    if dim % len(x.shape) != 1:
        importing.unsupported("it takes some rows of experts: expected some of their columns")
    places = tuple(range(first, first + step * count, step))
    name, columns = importing.name_of(call), Columns((0,), x.dtype, places)
    return on_routed_rows(importing.model, name, (x,), (columns,), whole=True)


def _parts(
    importing: Importing, call: Call, dim: int, first: int, sizes: Sequence[int]
) -> tuple[View, ...]:
    x = call.tensor()
    product = importing.products.get(x.source)
    if product is None or dim % len(x.shape) != 1 or not x.is_plain:
        importing.unsupported(
            "it takes parts of rows of experts: expected columns of a grouped product's result"
        )
    routed, weights = product
    parts = []
    for size in sizes:
        parts.append(weights.sliced(2, first, size))
        first += size
    return _multiplied(importing, importing.name_of(call), routed, parts)


def _routed(importing: Importing, call: Call, rows: View, offsets: object, groups: int) -> View:
    """Return rows routed to their experts, packed into tiles for a product."""
    form = opaque_form(rows)
    if isinstance(form, Routed):
        ends = opaque_form(offsets)
        if isinstance(ends, Control):
            fits = ends.meaning is Meaning.OFFSETS and ends.routing is form.routing
        else:
            experts = _experts(importing, offsets, rows.shape[0], groups)
            known = form.routing.rows
            fits = known is not None and np.array_equal(experts, known.experts)
        if not fits:
            importing.unsupported(
                "its groups differ from its rows' groups: expected the choice that routed the rows"
            )
        if form.routing.experts != groups:
            importing.unsupported(
                f"the number of groups is {groups}, of experts {form.routing.experts}: expected "
                "equal numbers"
            )
        return _packed(importing, rows)
    source = rows.source
    if source not in importing.dealt:
        experts = _experts(importing, offsets, rows.shape[0], groups)
        importing.dealt[source] = _dealt(importing, rows, experts, groups)
    return _packed(importing, importing.dealt[source])


def _experts(importing: Importing, offsets: object, count: int, groups: int) -> NDArray[np.int64]:
    ends = importing.known(offsets)
    if ends is None:
        importing.unsupported(
            "data decide which rows belong to which group: expected constant groups, or groups "
            "of a choice of experts"
        )
    counts: NDArray[np.int64] = np.diff(ends.astype(np.int64), prepend=0).astype(np.int64)
    if len(ends) != groups or (counts < 0).any() or int(ends[-1]) != count:
        importing.unsupported(
            f"its groups end at rows {ends.tolist()}: expected {groups} ascending ends, the "
            f"last one {count}"
        )
    return np.repeat(np.arange(groups), counts)


def _dealt(importing: Importing, rows: View, experts: NDArray[np.int64], groups: int) -> View:
    form = opaque_form(rows)
    tokens, order = rows.shape[0], np.arange(rows.shape[0])
    if isinstance(form, Gathered):
        tokens, order = form.rows.shape[0], form.order
    known = KnownRows(experts, np.lexsort((order, experts)))
    places = known.places(order, tokens)
    if places is None:
        importing.unsupported(
            "a group has a row twice or out of order, or rows are in different numbers of groups: "
            "expected each row in equally many groups, and each group in the order of the rows"
        )
    number = len(importing.routings)
    routing = Routing(number, tokens, places.shape[1], lambda _: places, "the choice", known)
    routing.experts = groups
    importing.routings.append(routing)
    return to_experts(importing.model, rows, routing)


def _packed(importing: Importing, rows: View) -> View:
    """Return routed rows packed into tiles. Rows in tiles are returned unchanged."""
    source, form = rows.source, form_of(rows.source)
    if form.spread is not Spread.ROWS:
        return rows
    if source not in importing.packed:
        routing = form.routing
        regions = importing.schedule.regions_of(routing.number, routing.experts)
        name = importing.model.name(f"{source.name}_pack")
        packed = Routed(routing, Spread.PACKED, Packing(regions))
        result = Opaque(name, source.shape, source.dtype, packed)
        ragged = importing.schedule.ragged
        tile_rows = importing.schedule.tile_rows if ragged == "static" else None
        kernel = Pack(name, Operand(rows, None), tile_rows, result)
        (importing.packed[source],) = importing.add(kernel)
    return importing.packed[source]


def _multiplied(
    importing: Importing, name: str, rows: View, weights: Sequence[View]
) -> tuple[View, ...]:
    source, form = rows.source, form_of(rows.source)
    assert form.packing is not None
    summed = form.spread is Spread.TILED
    tile = form.cols if summed else fit(weights[0].shape[2], importing.schedule.tile_cols)
    results = []
    for number, part in enumerate(weights):
        inner, cols = part.shape[1:]
        tiled = inner if summed else cols
        if tiled % tile:
            importing.unsupported(f"parts {tile} and {tiled} columns wide: expected equal widths")
        spread = Spread.PACKED if summed else Spread.TILED
        routed = Routed(form.routing, spread, form.packing, 0 if summed else tile)
        results.append(Opaque(f"{name}_{number}", (rows.shape[0], cols), source.dtype, routed))
    regions = form.packing.regions
    narrow = importing.schedule.weight_dtype_of(name)
    dtype = None if narrow is None else dtype_named(narrow)
    # In a block format, numbers along the inner dimension share a scale.
    transposed = dtype is not None and block_format(dtype) is not None
    stored = [_stored_as(each, dtype, transposed=transposed) for each in weights]
    parts = [[_of_region(each, region, regions) for region in range(regions)] for each in stored]
    kernel = GroupedProduct(name, Operand(rows, None), parts, tile, results, transposed=transposed)
    return importing.add(kernel)


def _stored_as(weights: View, dtype: np.dtype | None, *, transposed: bool) -> View:
    if transposed:
        weights = weights.permuted((0, 2, 1))
    return weights if dtype is None else View.of(weights.stored().retyped(dtype))


def _of_region(weights: View, region: int, regions: int) -> Tensor:
    share = weights.shape[0] // regions
    part = weights.sliced(0, region * share, share).source
    assert isinstance(part, Stored)
    return part.tensor

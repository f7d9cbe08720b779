"""Rows of tensors by numbers: embeddings, positions, and other indexing."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from operators.functions.ordering import Extremes, OnAxes, Tap, Weighed
from operators.kernels.off_chip import Gather
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.calls.indexing import flat_places, rows_by_data
from operators.torch.importing import Importing
from operators.torch.registry import imports

_MODES: Final = ("sum", "mean", "max")


@imports("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(importing: Importing, call: Call) -> tuple[View | None, ...]:
    """Sums, means or maxima of rows of a table, of neighbouring numbers each."""
    table, numbers, offsets = call.args[:3]
    ends, count = importing.known(offsets), math.prod(numbers.shape)
    weights = call.argument(6, "per_sample_weights")
    if ends is None or weights is not None:
        importing.unsupported("expected constant bags, of rows without weights")
    starts = [int(each) for each in ends]
    if not call.argument(7, "include_last_offset", False):
        starts.append(count)
    mode = _MODES[call.argument(4, "mode", 0)]
    rows = rows_of(importing, call, table, [numbers])
    counting = set(range(count))
    padding, ids = call.argument(8, "padding_idx", -1), importing.known(numbers)
    if padding >= 0:
        if ids is None:
            importing.unsupported("data decide which rows are padding: expected known rows")
        counting = set(np.flatnonzero(ids.reshape(-1) != padding).tolist())
    bags = tuple(tuple(at for at in range(*each) if at in counting) for each in pairwise(starts))
    if not all(bags):
        zeros = importing.filled(f"{call.name}_zeros", (1, *rows.shape[1:]), rows.dtype)
        rows = importing.joined(call, [rows, zeros], 0)
        bags = tuple(each or (count,) for each in bags)
    function: OnAxes = Extremes((bags,))
    if mode != "max":
        taps = (Tap(each, (1 / len(each) if mode == "mean" else 1.0,) * len(each)) for each in bags)
        function = Weighed((tuple(taps),), from_zero=True)
    found = importing.along(call, (rows,), (0,), function, (len(bags),), call.result.dtype)
    return found, None, None, None


@imports("aten.embedding.default")
def embedding(importing: Importing, call: Call) -> View:
    """Rows of a table; a padding row is read like any other."""
    table, numbers = call.args[:2]
    return rows_of(importing, call, table, [numbers])


def rows_of(importing: Importing, call: Call, x: View, given: list[Any]) -> View:
    """Plan ``x[given]``: rows of a table, from the dimensions that are not indexed.

    ``given`` has the numbers of the places of each dimension, or None for the whole dimension.
    """
    if any(isinstance(each, View) and not isinstance(each.source, Stored) for each in given):
        return rows_by_data(importing, call, x, given)
    first, numbers = _numbers(importing, given)
    count = len(numbers)
    sizes = x.shape[first : first + count]
    flat = flat_places(importing, numbers, sizes)
    indexed = tuple(range(first, first + count))
    behind = tuple(dim for dim in range(len(x.shape)) if dim not in indexed)
    rest = tuple(x.shape[dim] for dim in behind)
    table = x.permuted((*indexed, *behind)).reshaped((math.prod(sizes), math.prod(rest)))
    if isinstance(table.source, Stored):
        kernel = Gather(importing.name_of(call), table.stored(), flat, importing.schedule)
        (rows,) = importing.add(kernel)
    else:
        rows = importing.taken(call, table, 0, flat.reshape(-1).tolist())
    found, rank = rows.reshaped((*flat.shape, *rest)), flat.ndim
    # The dimensions of places come where the indexed dimensions were.
    return found.permuted(
        (*range(rank, rank + first), *range(rank), *range(rank + first, rank + len(rest)))
    )


def _numbers(importing: Importing, given: list[Any]) -> tuple[int, list[NDArray[np.int64]]]:
    """Return the first dimension that is indexed, and the numbers for it and its neighbours."""
    first, found = 0, list[NDArray[np.int64]]()
    dim = 0
    for each in given:
        if each is None:
            dim += 1
            continue
        array = importing.known(each)
        if array is None:
            importing.unsupported(
                "expected numbers of places that depend on no data, and are not on the meta device"
            )
        if found and first + len(found) != dim:
            importing.unsupported("expected neighbouring dimensions to be indexed")
        first = first if found else dim
        found.append(array.astype(np.int64))
        dim += 1
    return first, found

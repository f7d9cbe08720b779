"""Calls that read rows of a table by their numbers, such as embeddings."""

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
from operators.torch.calls.indexing import flat_places, in_place, rows_by_data
from operators.torch.importing import Importing
from operators.torch.registry import imports

_MODES: Final = ("sum", "mean", "max")


@imports("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(importing: Importing, call: Call) -> tuple[View | None, ...]:
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
    counted = set(range(count))
    padding, ids = call.argument(8, "padding_idx", -1), importing.known(numbers)
    if padding >= 0:
        if ids is None:
            importing.unsupported("data decide which rows are padding: expected known rows")
        counted = set(np.flatnonzero(ids.reshape(-1) != padding).tolist())
    bags = tuple(tuple(at for at in range(*ends) if at in counted) for ends in pairwise(starts))
    if not all(bags):
        zeros = importing.filled(f"{call.name}_zeros", (1, *rows.shape[1:]), rows.dtype)
        rows = importing.joined(call, [rows, zeros], 0)
        bags = tuple(bag or (count,) for bag in bags)
    function: OnAxes = Extremes((bags,))
    if mode != "max":
        taps = (Tap(bag, (1 / len(bag) if mode == "mean" else 1.0,) * len(bag)) for bag in bags)
        function = Weighed((tuple(taps),), from_zero=True)
    result = importing.along(call, (rows,), (0,), function, (len(bags),), call.result.dtype)
    return result, None, None, None


@imports("aten.embedding.default")
def embedding(importing: Importing, call: Call) -> View:
    table, numbers = call.args[:2]
    return rows_of(importing, call, table, [numbers])


def rows_of(importing: Importing, call: Call, x: View, index: list[Any]) -> View:
    """Plan ``x[index]``. The dimensions that are not indexed are the rows of a table.

    ``index`` has the places of each dimension, or None for a whole dimension.
    """
    if any(isinstance(each, View) and not isinstance(each.source, Stored) for each in index):
        return rows_by_data(importing, call, x, index)
    indexed = [dim for dim, each in enumerate(index) if each is not None]
    numbers = [_numbers(importing, index[dim]) for dim in indexed]
    first = indexed[0]
    if indexed != list(range(first, first + len(indexed))):
        importing.unsupported("expected neighbouring dimensions to be indexed")
    sizes = tuple(x.shape[dim] for dim in indexed)
    flat = flat_places(importing, numbers, sizes)
    others = [dim for dim in range(len(x.shape)) if dim not in indexed]
    rest = tuple(x.shape[dim] for dim in others)
    table = x.permuted((*indexed, *others)).reshaped((math.prod(sizes), math.prod(rest)))
    if isinstance(table.source, Stored):
        kernel = Gather(importing.name_of(call), table.stored(), flat, importing.schedule)
        (rows,) = importing.add(kernel)
    else:
        rows = importing.taken(call, table, 0, flat.reshape(-1).tolist())
    return in_place(rows, flat.shape, rest, first)


def _numbers(importing: Importing, places: object) -> NDArray[np.int64]:
    numbers = importing.known(places)
    if numbers is None:
        importing.unsupported(
            "expected numbers of places that depend on no data, and are not on the meta device"
        )
    return numbers.astype(np.int64)

"""Rows of stored tensors by known numbers: embeddings, positions, and other indexing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operators.kernels.gather import Gather
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.registry import imports

__all__ = ["rows_of"]


@imports("aten.embedding.default")
def embedding(importing: Importing, call: Call) -> View:
    """Rows of a table; what pads is a row like others."""
    table, numbers = call.args[:2]
    return rows_of(importing, call, table, [numbers])


def rows_of(importing: Importing, call: Call, x: View, given: list[Any]) -> View:
    """Plan ``x[given]``: rows of a table of what is behind the dimensions that are indexed.

    Args:
        importing: the model.
        call: what is imported.
        x: in off-chip memory.
        given: for each dimension the numbers of places in it, or None for all of them.
    """
    if not isinstance(x.source, Stored):
        importing.unsupported(
            f"{x.source.name} is computed: expected a tensor that is in off-chip memory when the "
            "program starts"
        )
    first, numbers = _numbers(importing, given)
    count = len(numbers)
    sizes = x.shape[first : first + count]
    flat = _flat(importing, numbers, sizes)
    indexed = tuple(range(first, first + count))
    behind = tuple(dim for dim in range(len(x.shape)) if dim not in indexed)
    rest = tuple(x.shape[dim] for dim in behind)
    table = x.permuted((*indexed, *behind)).reshaped((math.prod(sizes), math.prod(rest)))
    kernel = Gather(importing.name_of(call), table.stored(), flat, importing.schedule)
    (rows,) = importing.add(kernel)
    found, rank = rows.reshaped((*flat.shape, *rest)), flat.ndim
    # The places stand where the dimensions stood that they index.
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


def _flat(
    importing: Importing, numbers: list[NDArray[np.int64]], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the numbers of places in several dimensions as numbers of rows."""
    rows = np.zeros((), np.int64)
    for each, size in zip(np.broadcast_arrays(*numbers), sizes, strict=True):
        if each.size and not -size <= int(each.min()) <= int(each.max()) < size:
            importing.unsupported(
                f"place {int(each.max())} of {size}: expected numbers of {-size} to {size - 1}"
            )
        rows = rows * size + each % size
    if not rows.size:
        importing.unsupported("no places at all: expected at least one")
    return rows

"""Rows to experts and back: kernels that follow a choice of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Program, Stream
from operators.accum import Accum
from operators.flat_map import FlatMap
from operators.functions.reduction import Sum
from operators.functions.retile import SplitTiles
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.routed import Routed, RoutedStreams, as_rows
from operators.kernels.routing import Routing, selected
from operators.kernels.tensors import Computed, Opaque
from operators.partition import Partition
from operators.reassemble import Reassemble
from operators.streams.dimensions import redimensioned

__all__ = ["Collect", "Deal"]

Places = Callable[[], NDArray[np.int64]]
"""The streams that each selector names, ``[..., hits]``."""


class Deal(Kernel):
    """Send rows to the experts that a choice names: one Partition.

    Attributes:
        routing: of the layer.
        places: of the selectors, one for each row.
    """

    family: ClassVar = "routing"

    def __init__(
        self,
        name: str,
        routing: Routing,
        rows: Operand,
        places: Places,
        indices: Operand | None,
        result: Opaque,
    ) -> None:
        """Deal ``rows``, tiles whose rows have the result's columns.

        Args:
            name: of its operators.
            routing: of the layer.
            rows: what is dealt.
            places: as attribute.
            indices: integers that name the experts of each row, where data choose them.
            result: the routed rows.
        """
        self.name = name
        self.routing = routing
        self.places = places
        self.operands = (rows,) if indices is None else (rows, indices)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        places = self.places()
        dims = places.shape[:-1]
        form = self.results[0]
        assert isinstance(form, Opaque)
        assert isinstance(form.form, Routed)
        rows = _in_rows(self.operands[0], inputs[0], form.shape[-1], dims)
        route = _choosing(self, inputs[1:], places)
        dealt = Partition(self.routing.experts, name=self.name)(rows, route)
        return (RoutedStreams(form.form, dealt, rows=dealt).flat(),)

    @override
    def tell(self, program: Program, given: Sequence[Streams]) -> None:
        """Say how many rows each expert gets."""
        (streams,) = given
        assert isinstance(streams, tuple)
        for stream, count in zip(streams, self.routing.counts(), strict=False):
            program.bind(stream.shape[0], count)


class Collect(Kernel):
    """Bring routed rows back into the order of the tokens: one Reassemble.

    A channel in front of it has room for all rows that an expert can get: it waits for the first
    token, whose experts may be done last.

    Attributes:
        routing: of the layer.
        places: of the selectors: one of each row of the result, or all of a token.
        adds_up: the rows of a token are added up.
    """

    family: ClassVar = "routing"

    def __init__(
        self,
        name: str,
        routing: Routing,
        rows: Operand,
        places: Places,
        indices: Operand | None,
        result: Computed,
        *,
        adds_up: bool,
    ) -> None:
        """Collect routed ``rows``; the other arguments are those of ``Deal``."""
        self.name = name
        self.routing = routing
        self.places = places
        self.adds_up = adds_up
        self.operands = (rows,) if indices is None else (rows, indices)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        given = inputs[0]
        source, result = self.operands[0].view.source, self.results[0]
        assert isinstance(source, Opaque)
        assert isinstance(source.form, Routed)
        assert isinstance(given, tuple)
        assert isinstance(result, Computed)
        rows = as_rows(self.name, RoutedStreams.of(source.form, given))
        order = _choosing(self, inputs[1:], self.places())
        found = Reassemble(name=self.name)(rows.data, order)
        if self.adds_up:
            found = Accum(Sum(), name=f"{self.name}_sum")(found)
        return (redimensioned(found, (1, *result.layout.trips)),)

    @override
    def tell(self, program: Program, given: Sequence[Streams]) -> None:
        """Say how deep channels have to be."""
        for expert in range(self.routing.experts):
            program.deepen(f"{self.name}.{expert}", max(1, self.routing.tokens))


def _choosing(
    kernel: Deal | Collect, indices: Sequence[Streams], places: NDArray[np.int64]
) -> Stream:
    """Return the selectors of a kernel, ``[1, *places.shape[:-1]]``."""
    rows = None
    if indices:
        *dims, hits = places.shape
        rows = _in_rows(kernel.operands[1], indices[0], hits, dims)
    return selected(rows, places, kernel.routing.experts, f"{kernel.name}_choose")


def _in_rows(operand: Operand, given: Streams, cols: int, dims: Sequence[int]) -> Stream:
    """Return ``[1, *dims]`` of 1 x cols, of tiles of whole rows."""
    layout = operand.layout
    assert isinstance(given, Stream)
    assert layout is not None
    if (layout.rows, layout.cols) != (1, cols):
        given = redimensioned(given, (1, layout.count))
        given = FlatMap(SplitTiles(1, cols))(given)
    return redimensioned(given, (1, *dims))

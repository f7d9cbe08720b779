"""Rows of tokens at experts: choices at planning time, and the kernels that route the rows.

Kernels send rows to experts, pack the rows of an expert to tiles, and collect the results. Experts
may share regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Program, ProgramError, Stream
from operators.accum import Accum
from operators.flat_map import FlatMap
from operators.functions.base import Sum
from operators.functions.choosing import SelectorOf
from operators.functions.retile import RetileCol, RetileRow, SplitRows, SplitTiles
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.tensors import Computed, Opaque, Source
from operators.map import Map
from operators.partition import Partition
from operators.reassemble import EagerMerge, Reassemble
from operators.shape import Flatten, Reshape, redimensioned
from operators.sources import Selectors

Choice = Callable[[int], NDArray[np.int64]]
"""Returns each token's experts, [tokens, hits], all different, for a number of experts."""


class KnownRows(NamedTuple):
    """Routed rows with known experts.

    Attributes:
        experts: the expert of each row, ascending.
        order: the number of each row, in the order of ``experts``.
    """

    experts: NDArray[np.int64]
    order: NDArray[np.int64]

    def places(self, where: NDArray[np.int64], count: int) -> NDArray[np.int64] | None:
        """Return the experts of each of ``count`` rows, [count, hits].

        ``where`` has the number of each routed row among these rows. The result is None if rows go
        to different numbers of experts, or do not reach an expert in ascending order.
        """
        sent = where[self.order]
        hits, rest = divmod(len(sent), count)
        if rest or (np.bincount(sent, minlength=count) != hits).any():
            return None
        same = self.experts[1:] == self.experts[:-1]
        if (sent[1:] <= sent[:-1])[same].any():
            return None
        return self.experts[np.argsort(sent, kind="stable")].reshape(count, hits)


@dataclass(eq=False)
class Routing:
    """The routing of one layer, which all calls on its routed tokens share.

    Attributes:
        number: the layer's number among the layers that route, from 0.
        hits: the number of experts of a token.
        rows: the known routed rows; None if data choose the experts.
        experts: the number of experts; 0 until a call sets it.
    """

    number: int
    tokens: int
    hits: int
    _choice: Choice
    _choice_name: str
    rows: KnownRows | None = None
    experts: int = field(default=0, init=False)
    _checked_choice: NDArray[np.int64] | None = field(default=None, init=False)

    def choice(self) -> NDArray[np.int64]:
        """Return the experts of each token, [tokens, hits]; for timing mode only if data choose."""
        if self._checked_choice is None:
            self._checked_choice = self._checked(np.asarray(self._choice(self.experts)))
        return self._checked_choice

    def counts(self) -> list[int]:
        counts: list[int] = np.bincount(self.choice().reshape(-1), minlength=self.experts).tolist()
        return counts

    def _checked(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        expected = (self.tokens, self.hits)
        if choice.shape != expected or choice.dtype.kind not in "iu":
            raise ProgramError(
                f"{self._choice_name} is an array {list(choice.shape)} of {choice.dtype}: "
                f"expected integers {list(expected)}, the experts of each token"
            )
        if choice.size and not 0 <= int(choice.min()) <= int(choice.max()) < self.experts:
            raise ProgramError(
                f"{self._choice_name} names experts {choice.min()} to {choice.max()}: "
                f"expected 0 to {self.experts - 1}"
            )
        ordered = np.sort(choice, axis=1)
        twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
        if len(twice):
            token, place = twice[0].tolist()
            raise ProgramError(
                f"{self._choice_name} names expert {ordered[token, place]} twice for token "
                f"{token}: expected different experts"
            )
        return choice.astype(np.int64)


def drawn(number: int, tokens: int, hits: int) -> Choice:
    """Return a random choice for layer ``number``, in which all experts are equally likely."""

    def choice(experts: int) -> NDArray[np.int64]:
        random = np.random.default_rng((0, number))
        order: NDArray[np.int64] = random.random((tokens, experts)).argsort(axis=1)
        return order[:, :hits]

    return choice


def selected(indices: Stream | None, choice: NDArray[np.int64], width: int, name: str) -> Stream:
    """Return selectors ``[1, *choice.shape[:-1]]`` of ``width`` streams.

    If data choose, ``indices`` are rows of integers that name the streams, and a Map called
    ``name`` converts them. Timing mode then uses ``choice``.
    """
    constant = Selectors(choice, width)()
    return constant if indices is None else Map(SelectorOf(), name=name)(indices, constant)


class Spread(Enum):
    """The forms of routed rows on streams."""

    ROWS = "one row after the other, a stream for each expert"
    PACKED = "tiles of several whole rows, a stream for each region"
    TILED = "tiles of several rows and some columns, a stream for each region"


@dataclass(frozen=True, eq=False)
class Packing:
    """One packing of rows to tiles in a number of regions; neighbouring experts share a region."""

    regions: int


@dataclass(frozen=True)
class Routed:
    """Rows of tokens at their experts; the form of an ``Opaque``.

    Attributes:
        packing: how rows were packed to tiles; None for single rows.
        cols: columns of a tile; 0 if rows are whole.
    """

    routing: Routing
    spread: Spread
    packing: Packing | None = None
    cols: int = 0

    def __str__(self) -> str:
        return "rows of tokens at their experts"


def form_of(source: Source) -> Routed:
    assert isinstance(source, Opaque)
    assert isinstance(source.form, Routed)
    return source.form


@dataclass(frozen=True)
class RoutedStreams:
    """The streams of routed rows.

    Attributes:
        data: for each expert [D_i] of 1xC, or for each region [n_r] of NxC or [n_r, J] of Nxc.
        origins: for each region of tiles a stream [n_r] for the loads of weights: the expert of
            each tile, or the packed tiles if the region has one expert.
        rows: for each expert a stream with the expert's number of rows.
    """

    form: Routed
    data: tuple[Stream, ...]
    origins: tuple[Stream, ...] = field(default=(), kw_only=True)
    rows: tuple[Stream, ...] = field(default=(), kw_only=True)

    @property
    def share(self) -> int:
        packing = self.form.packing
        return 1 if packing is None else self.form.routing.experts // packing.regions

    @staticmethod
    def of(operand: Operand, streams: Streams) -> RoutedStreams:
        """Return the streams of an operand, which ``flat`` put into one tuple."""
        assert isinstance(streams, tuple)
        form = form_of(operand.view.source)
        experts = form.routing.experts
        count = experts if form.packing is None else form.packing.regions
        data, others = streams[:count], streams[count:]
        return RoutedStreams(
            form,
            tuple(data),
            origins=tuple(others[: len(others) - experts]),
            rows=tuple(others[len(others) - experts :]),
        )

    def flat(self) -> tuple[Stream, ...]:
        return (*self.data, *self.origins, *self.rows)

    def with_data(self, form: Routed, data: Sequence[Stream]) -> RoutedStreams:
        return RoutedStreams(form, tuple(data), origins=self.origins, rows=self.rows)


def as_packed(name: str, routed: RoutedStreams) -> RoutedStreams:
    """Return whole rows, by joining tiles of some columns."""
    form = routed.form
    if form.spread is not Spread.TILED:
        return routed
    whole = [
        Accum(RetileCol(), name=f"{name}_widen_r{region}")(each)
        for region, each in enumerate(routed.data)
    ]
    return routed.with_data(Routed(form.routing, Spread.PACKED, form.packing), whole)


def as_rows(name: str, routed: RoutedStreams) -> RoutedStreams:
    """Return single rows, in a stream for each expert."""
    packed = as_packed(name, routed)
    form = packed.form
    if form.spread is Spread.ROWS:
        return packed
    data, share = packed.data, packed.share
    if share > 1:
        data = tuple(
            one
            for region, pair in enumerate(zip(data, packed.origins, strict=True))
            for one in Partition(share, name=f"{name}_leave_r{region}")(*pair)
        )
    split = SplitRows(valid_only=True)
    rows = [
        FlatMap(split, name=f"{name}_rows_e{expert}")(each).assume(*count.shape)
        for expert, (each, count) in enumerate(zip(data, packed.rows, strict=True))
    ]
    return RoutedStreams(Routed(form.routing, Spread.ROWS), tuple(rows), rows=packed.rows)


Places = Callable[[], NDArray[np.int64]]
"""Returns the streams that each selector names, ``[..., hits]``."""


class _ByChoice(Kernel):
    """A routing kernel; ``places`` has the experts of each row.

    If data choose the experts, ``indices`` are integers that name them.
    """

    family: ClassVar = "routing"

    def __init__(
        self,
        name: str,
        routing: Routing,
        rows: Operand,
        places: Places,
        indices: Operand | None,
        result: Source,
    ) -> None:
        super().__init__(name, (rows,) if indices is None else (rows, indices), result)
        self.routing, self.places = routing, places

    def route(self, indices: Sequence[Streams], places: NDArray[np.int64]) -> Stream:
        rows = None
        if indices:
            *dims, hits = places.shape
            rows = _in_rows(self.operands[1], indices[0], hits, dims)
        return selected(rows, places, self.routing.experts, f"{self.name}_choose")


class Deal(_ByChoice):
    """Send rows to experts in a Partition."""

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        places, (result,) = self.places(), self.results
        dims = places.shape[:-1]
        rows = _in_rows(self.operands[0], inputs[0], result.shape[-1], dims)
        route = self.route(inputs[1:], places)
        dealt = Partition(self.routing.experts, name=self.name)(rows, route)
        return (RoutedStreams(form_of(result), dealt, rows=dealt).flat(),)

    @override
    def configure(self, program: Program, outputs: Sequence[Streams]) -> None:
        (streams,) = outputs
        assert isinstance(streams, tuple)
        for stream, count in zip(streams, self.routing.counts(), strict=False):
            program.bind(stream.shape[0], count)


class Collect(_ByChoice):
    """Collect routed rows in the order of the tokens, in a Reassemble.

    ``places`` has the experts of each row of the result, or of all rows of a token together. If
    ``adds_up``, the rows of a token are added up.
    """

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
        super().__init__(name, routing, rows, places, indices, result)
        self.adds_up = adds_up

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Computed)
        rows = as_rows(self.name, RoutedStreams.of(self.operands[0], inputs[0]))
        order = self.route(inputs[1:], self.places())
        rows_in_order = Reassemble(name=self.name)(rows.data, order)
        if self.adds_up:
            rows_in_order = Accum(Sum(), name=f"{self.name}_sum")(rows_in_order)
        return (redimensioned(rows_in_order, (1, *result.layout.trips)),)

    @override
    def configure(self, program: Program, outputs: Sequence[Streams]) -> None:
        # The first token may be the last to finish; until then all rows of an expert wait.
        for expert in range(self.routing.experts):
            program.deepen(f"{self.name}.{expert}", max(1, self.routing.tokens))


def _in_rows(operand: Operand, tiles: Streams, cols: int, dims: Sequence[int]) -> Stream:
    """Return ``[1, *dims]`` of 1 x cols from tiles of whole rows."""
    layout = operand.layout
    assert isinstance(tiles, Stream)
    assert layout is not None
    if (layout.rows, layout.cols) != (1, cols):
        tiles = redimensioned(tiles, (1, layout.count))
        tiles = FlatMap(SplitTiles(1, cols))(tiles)
    return redimensioned(tiles, (1, *dims))


class Pack(Kernel):
    """Pack the rows of every expert to tiles, and merge the tiles of experts that share a region.

    Tiles have ``tile_rows`` rows, the last one padded with zeros. If it is None, one tile has all
    rows of an expert.
    """

    family: ClassVar = "routing"

    def __init__(self, name: str, rows: Operand, tile_rows: int | None, result: Opaque) -> None:
        super().__init__(name, (rows,), result)
        self.tile_rows = tile_rows

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        form = form_of(self.results[0])
        assert form.packing is not None
        rows = as_rows(self.name, RoutedStreams.of(self.operands[0], inputs[0]))
        packed = [self._packed(expert, each) for expert, each in enumerate(rows.data)]
        regions = form.packing.regions
        share = len(packed) // regions
        origins = tuple(packed)
        if share > 1:
            # The region serves its experts in order of arrival.
            merged = [
                EagerMerge(name=f"{self.name}_merge_r{region}")(packed[first : first + share])
                for region, first in enumerate(range(0, len(packed), share))
            ]
            packed = [tiles for tiles, _ in merged]
            origins = tuple(origin for _, origin in merged)
        streams = RoutedStreams(form, tuple(packed), origins=origins, rows=rows.rows)
        return (streams.flat(),)

    def _packed(self, expert: int, rows: Stream) -> Stream:
        """Pack [D_i] of 1xC to [n_i] of NxC, or to [1 or 0] of D_i x C."""
        name = f"{self.name}_e{expert}"
        if self.tile_rows is None:
            chunks = Flatten(0, 1)(Reshape(1, outermost=True)(rows)[0])  # [1 or 0, D_i]
        else:
            chunks = Reshape(self.tile_rows, pad=0.0, outermost=True)(rows)[0]
            chunks = Flatten(1, 2)(chunks)  # [n_i, N]
        return Accum(RetileRow(), name=name)(chunks)

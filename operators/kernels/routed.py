"""Routed rows: how the rows that go to experts are there, and how one form becomes another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from fabric import Stream
from operators.accum import Accum
from operators.flat_map import FlatMap
from operators.functions.retile import RetileCol, SplitRows
from operators.kernels.routing import Routing
from operators.partition import Partition

__all__ = ["Packing", "Routed", "RoutedStreams", "Spread", "as_packed", "as_rows"]


class Spread(Enum):
    """What the streams of routed rows carry."""

    ROWS = "one row after the other, a stream for each expert"
    PACKED = "tiles of several whole rows, a stream for each region"
    TILED = "tiles of several rows and some columns, a stream for each region"


@dataclass(frozen=True, eq=False)
class Packing:
    """How rows were packed to tiles, once: which share regions, and whose tile came when.

    Attributes:
        regions: how many share the experts, neighbours each.
    """

    regions: int


@dataclass(frozen=True)
class Routed:
    """Rows of tokens at their experts; the form of an ``Opaque``.

    Attributes:
        routing: which rows go where.
        spread: what the streams carry.
        packing: of tiles; None of rows.
        cols: of a tile of some columns; 0 where rows are whole.
    """

    routing: Routing
    spread: Spread
    packing: Packing | None = None
    cols: int = 0

    def __str__(self) -> str:
        """As messages show it."""
        return "rows of tokens at their experts"


@dataclass(frozen=True)
class RoutedStreams:
    """The streams of routed rows.

    Attributes:
        form: what they carry.
        data: [D_i] of 1xC for each expert, [n_r] of NxC or [n_r, J] of Nxc for each region.
        origins: of tiles, for each region [n_r]: which of its experts a tile belongs to; where it
            has only one, the tiles as they were packed. Loads of weights follow them.
        rows: for each expert the rows as they were routed, which say how many there are.
    """

    form: Routed
    data: tuple[Stream, ...]
    origins: tuple[Stream, ...] = field(default=(), kw_only=True)
    rows: tuple[Stream, ...] = field(default=(), kw_only=True)

    @property
    def share(self) -> int:
        """Experts of a region."""
        packing = self.form.packing
        return 1 if packing is None else self.form.routing.experts // packing.regions

    @staticmethod
    def of(form: Routed, streams: Sequence[Stream]) -> RoutedStreams:
        """Take apart what ``flat`` put together."""
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
        """All of them, as kernels hand them on."""
        return (*self.data, *self.origins, *self.rows)

    def with_data(self, form: Routed, data: Sequence[Stream]) -> RoutedStreams:
        """Return what a kernel makes of them, in the same order."""
        return RoutedStreams(form, tuple(data), origins=self.origins, rows=self.rows)


def as_packed(name: str, given: RoutedStreams) -> RoutedStreams:
    """Return tiles of whole rows, from such tiles or from tiles of some columns."""
    form = given.form
    if form.spread is not Spread.TILED:
        return given
    whole = [
        Accum(RetileCol(), name=f"{name}_widen_r{region}")(each)
        for region, each in enumerate(given.data)
    ]
    return given.with_data(Routed(form.routing, Spread.PACKED, form.packing), whole)


def as_rows(name: str, given: RoutedStreams) -> RoutedStreams:
    """Return rows, a stream for each expert."""
    packed = as_packed(name, given)
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

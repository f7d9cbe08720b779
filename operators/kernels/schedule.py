"""Schedules: tiling, loop order and on-chip memory of a model's calls, and a search for them.

Source: StreamTensor, arXiv 2509.13694v2, section 4: one tile size for all kernels, searched as a
black box with the fusion as feedback, and channels sized at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from math import ceil, isqrt
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from fabric import (
    CapacityError,
    ConfigurationError,
    Dim,
    FabricError,
    Program,
    Report,
    ShapeError,
    lower_bounds,
    simulate,
    size,
)
from fabric.extend import Bounds, Described, checked
from operators.kernels.progress import progress

Value = TypeVar("Value")

Order: TypeAlias = Literal["weight", "row", "output"]

WeightDtype: TypeAlias = Literal[
    "int4", "int8", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"
]

_TILES: Final = (16, 64, 256)

_ORDERS: Final[tuple[Order, ...]] = ("weight", "row", "output")

_MOST_RUN: Final = 2_000_000
"""Programs with more elements are not run for a comparison; this many take about a second."""

_MOST_SIZED: Final = 2_000
"""Channels of programs with more elements are not sized; this many take some seconds."""


@dataclass(frozen=True, kw_only=True)
class Schedule(Described):
    """How a model becomes a program.

    Tile sizes are wishes: a kernel takes a divisor of the dimension near the wish.

    Attributes:
        tile_rows: rows of an activation's tile.
        tile_cols: columns of a weight's tile, and of a product with it.
        tile_inner: inner dimension of a product that is summed tile by tile.
        order: the loop order of matrix products. ``row``: a tile of rows is kept while all weights
            are read, so weights are read once for each tile of rows. ``weight``: a tile of weights
            is kept while all rows are read, so weights are read once. ``output``: a tile of sums is
            kept while rows and weights are read in tiles of the inner dimension.
        orders: the orders of single products, by patterns of their names.
        ragged: how the rows of a group, which data choose, are packed: in ``static`` tiles of
            ``tile_rows``, the last one padded, or in one ``dynamic`` tile of all rows.
        regions: how many regions share the groups of each ragged product; None for one region per
            group. A tuple has one number for each ragged layer.
        tile_keys: rows of a tile of keys and values.
        weight_dtype: element type of stored weights of products, narrower than the other operand,
            such as int4 beside activations of 8 bits. It has to hold the values of weights that
            have data. None for the weights' own type.
        weight_dtypes: the element types of single products, by patterns of their names.
        units: how many units share the columns of each product with weights, tile by tile in turn.
            Each unit reads weights with the bandwidth of one memory unit.
        attention_regions: how many regions share the tasks of each attention, in turn. A task is a
            tile of queries of the heads that share keys.
        on_chip_bytes: the most bytes for buffers of kernels that are on chip together, including
            the buffers of converters. Edges that do not fit go through off-chip memory. None for
            no limit.
        flops_per_cycle: the bandwidth of all compute units together, shared out so that the slowest
            unit is as fast as possible. None for the bandwidths of the program.
        tuned: whether tile sizes, order and depths of channels are searched. The candidates include
            the sizes and the order given here.
    """

    tile_rows: Annotated[int, Bounds(1)] = 16
    tile_cols: Annotated[int, Bounds(1)] = 64
    tile_inner: Annotated[int, Bounds(1)] = 64
    tile_keys: Annotated[int, Bounds(1)] = 64
    weight_dtype: WeightDtype | None = None
    weight_dtypes: Mapping[str, WeightDtype] = field(default_factory=dict)
    units: Annotated[int, Bounds(1)] = 1
    attention_regions: Annotated[int, Bounds(1)] = 1
    order: Order = "weight"
    orders: Mapping[str, Order] = field(default_factory=dict)
    ragged: Literal["static", "dynamic"] = "dynamic"
    regions: int | tuple[int, ...] | None = None
    on_chip_bytes: Annotated[int, Bounds(0)] | None = None
    flops_per_cycle: Annotated[int, Bounds(1)] | None = None
    tuned: bool = False

    @classmethod
    @checked
    def auto(
        cls,
        on_chip_bytes: Annotated[int, Bounds(0)] | None = None,
        flops_per_cycle: Annotated[int, Bounds(1)] | None = None,
    ) -> Schedule:
        """Return a schedule that is searched when a program is made.

        As in StreamTensor, the search chooses tiles and order, fuses kernels that fit on chip, and
        sizes channels. The compute bandwidth is shared out for the slowest unit.

        Example:
            >>> Schedule.auto(on_chip_bytes=1 << 20).tuned
            True
        """
        return cls(on_chip_bytes=on_chip_bytes, flops_per_cycle=flops_per_cycle, tuned=True)

    def regions_of(self, layer: int, experts: int) -> int:
        wish = self.regions
        if isinstance(wish, tuple):
            if layer >= len(wish):
                raise ConfigurationError(
                    f"regions is {wish}: expected a number for ragged layer {layer}, too"
                )
            wish = wish[layer]
        if wish is None:
            return experts
        if wish < 1 or experts % wish:
            raise ConfigurationError(
                f"regions is {wish} for ragged layer {layer}: expected a divisor of the number of "
                f"groups, {experts}"
            )
        return wish

    def order_of(self, name: str) -> Order:
        return _first(self.orders, name, self.order)

    def weight_dtype_of(self, name: str) -> WeightDtype | None:
        return _first(self.weight_dtypes, name, self.weight_dtype)


def _first(patterns: Mapping[str, Value], name: str, otherwise: Value) -> Value:
    """Return the value of the first pattern that matches ``name``."""
    matching = (value for pattern, value in patterns.items() if fnmatchcase(name, pattern))
    return next(matching, otherwise)


def divisors(size: int) -> set[int]:
    small = [each for each in range(1, isqrt(size) + 1) if size % each == 0]
    return {*small, *(size // divisor for divisor in small)}


def at_most(wish: int, size: int) -> int:
    """Return the largest divisor of ``size`` that is not above ``wish``."""
    return max(each for each in divisors(size) if each <= wish)


def fit(size: int, wish: int) -> int:
    """Return a divisor of ``size`` for a tile of about ``wish``.

    It is the largest divisor up to the wish. If that is less than a quarter of the wish, as for a
    prime number, it is the smallest divisor above, up to eight times the wish.
    """
    sizes = divisors(size)
    below = max(each for each in sizes if each <= max(1, wish))
    if 4 * below >= min(wish, size):
        return below
    above = min((each for each in sizes if each > wish), default=below)
    return above if above <= 8 * wish else below


def number_of(program: Program, dim: Dim) -> int | None:
    """Return ``dim`` rounded up; None if it depends on symbols that ``program`` does not bind."""
    value = dim if isinstance(dim, int) else dim.with_sizes(program.sizes)
    return ceil(value) if isinstance(value, int | Fraction) else None


def candidates(schedule: Schedule) -> Iterator[Schedule]:
    """Yield ``schedule``, and the same with other tiles and orders."""
    yield schedule
    for order in _ORDERS:
        for tile in _TILES:
            candidate = replace(
                schedule,
                tile_rows=tile,
                tile_cols=tile,
                tile_inner=tile,
                tile_keys=tile,
                order=order,
            )
            if candidate != schedule:
                yield candidate


@dataclass(frozen=True, eq=False)
class _Tried:
    """A program under one of the candidates; it takes at least ``at_least`` cycles."""

    schedule: Schedule
    program: Program
    at_least: int
    elements: int


def tuned(schedule: Schedule, build: Callable[[Schedule], Program]) -> Program:
    """Return the program that is shortest under one of the candidates for ``schedule``.

    Small enough candidates are run in timing mode, in ascending order of their lower bound of
    cycles, until no bound is below the shortest run. If none is small enough, the bounds decide.
    The first of equal candidates is taken.

    Channels of a small program get the depths with the fewest bytes that are as fast as unlimited
    channels. Channels of a larger program get the number of slots that its run used, which does not
    change that run. Streams of other lengths than in the timing run may need other depths.

    If no candidate makes a program, the first candidate's error is raised.
    """
    tried: list[_Tried] = []
    failures: list[FabricError] = []
    for candidate in candidates(schedule):
        try:
            program = build(candidate)
        except (CapacityError, ShapeError) as error:
            failures.append(error)
            continue
        at_least = lower_bounds(program).at_least["cycles"]
        types = [stream for node in program.nodes for stream in node.input_types]
        elements = sum(number_of(program, stream.count) or 0 for stream in types)
        tried.append(_Tried(candidate, program, at_least, elements))
    if not tried:
        raise failures[0]
    reports = dict(_runs(tried))
    best = min(reports or tried, key=lambda each: _cycles(each, reports))
    sized = _sized(best, reports.get(best))
    plan = best.schedule
    tiles = f"tiles of {plan.tile_rows}x{plan.tile_inner}x{plan.tile_cols}, order {plan.order}"
    how = f"{len(reports)} of {len(tried)} run" if reports else "by lower bounds"
    text = f"{tiles}, {how}, {sized}"
    best.program.extra["schedule"] = lambda: text
    return best.program


def _cycles(tried: _Tried, reports: Mapping[_Tried, Report]) -> int:
    cycles = reports[tried].cycles if reports else tried.at_least
    assert cycles is not None
    return cycles


def _runs(tried: list[_Tried]) -> Iterator[tuple[_Tried, Report]]:
    """Run the candidates in ascending order of their bounds while a shorter run is possible."""
    shortest: int | None = None
    for each in sorted(tried, key=lambda each: each.at_least):
        if each.elements > _MOST_RUN:
            continue
        if shortest is not None and each.at_least >= shortest:
            return
        progress(f"Schedule.auto runs a program of at least {each.at_least:,} cycles")
        report = simulate(each.program, mode="timing", on_deadlock="describe")
        if report.status == "completed":
            assert report.cycles is not None
            shortest = min(report.cycles, shortest or report.cycles)
            yield each, report


def _sized(chosen: _Tried, report: Report | None) -> str:
    """Set the depths of a program's channels; return how they were found."""
    program = chosen.program
    if report is None:
        return "channels not sized"
    assert report.elements is not None
    if report.elements <= _MOST_SIZED:
        progress("Schedule.auto sizes the channels")
        sizing = size(program, goal="same-cycles")
        for option, depth in sizing.depths.items():
            program.deepen(option, depth)
        return f"channels sized ({sizing.truth})"
    for channel in report.channels_counters:
        option = channel.name.split(" -> ")[1]
        if channel.peak_occupancy < program.depth_of(option):
            program.deepen(option, max(1, channel.peak_occupancy))
    return "channels as deep as a run has filled them"

"""Tiles, order and channels found by trying: the schedule that ``Schedule.auto`` asks for.

Source: StreamTensor, arXiv 2509.13694v2, section 4: one tile size for all kernels, tried as a black
box with what fusion says of it, and channels sized at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from fabric import (
    CapacityError,
    FabricError,
    Program,
    Report,
    ShapeError,
    lower_bounds,
    simulate,
    size,
)
from operators.kernels.schedule import Order, Schedule, number_of

__all__ = ["candidates", "tuned"]

_TILES: Final = (16, 64, 256)
_ORDERS: Final[tuple[Order, ...]] = ("weight", "row", "output")

_MOST_RUN: Final = 2_000_000
"""Elements of a program that is still run to be compared: a second or so."""

_MOST_SIZED: Final = 2_000
"""Elements of a program whose channels are still sized, which takes many runs: some seconds."""


def candidates(schedule: Schedule) -> Iterator[Schedule]:
    """Yield ``schedule``, and others like it with tiles of one size and all orders."""
    yield schedule
    for order in _ORDERS:
        for tile in _TILES:
            found = replace(
                schedule,
                tile_rows=tile,
                tile_cols=tile,
                tile_inner=tile,
                tile_keys=tile,
                order=order,
            )
            if found != schedule:
                yield found


@dataclass(frozen=True, eq=False)
class _Tried:
    """A program under one of the candidates.

    Attributes:
        schedule: of it.
        program: under that.
        at_least: cycles that no run of it beats.
        elements: that its operators take, as far as the program knows.
    """

    schedule: Schedule
    program: Program
    at_least: int
    elements: int


def tuned(schedule: Schedule, build: Callable[[Schedule], Program]) -> Program:
    """Return the program that is shortest under one of the candidates for ``schedule``.

    Candidates that are small enough are run in timing mode, those with the smallest lower bound of
    their cycles first, until no bound is below the shortest run. Where none is small enough the
    bounds decide. Of several the first one counts.

    Channels of a program that is small get the depths of least bytes with which it is as fast as
    with channels without limits, those of a larger one as many slots as its run has used, which
    changes nothing in that run. So they are for streams as long as in a run in timing mode.

    Raises:
        FabricError: no candidate makes a program: why the first one does not.
    """
    found: list[_Tried] = []
    failures: list[FabricError] = []
    for candidate in candidates(schedule):
        try:
            program = build(candidate)
        except (CapacityError, ShapeError) as error:
            failures.append(error)
            continue
        at_least = lower_bounds(program).at_least["cycles"]
        found.append(_Tried(candidate, program, at_least, _elements(program)))
    if not found:
        raise failures[0]
    reports = dict(_runs(found))
    best = min(reports or found, key=lambda each: _cycles(each, reports))
    sized = _sized(best, reports.get(best))
    its = best.schedule
    tiles = f"tiles of {its.tile_rows}x{its.tile_inner}x{its.tile_cols}, order {its.order}"
    how = f"{len(reports)} of {len(found)} run" if reports else "by lower bounds"
    text = f"{tiles}, {how}, {sized}"
    best.program.extra["schedule"] = lambda: text
    return best.program


def _cycles(tried: _Tried, reports: Mapping[_Tried, Report]) -> int:
    cycles = reports[tried].cycles if reports else tried.at_least
    assert cycles is not None
    return cycles


def _runs(found: list[_Tried]) -> Iterator[tuple[_Tried, Report]]:
    """Yield what was run, with its report, as long as something could be shorter."""
    shortest: int | None = None
    for each in sorted(found, key=lambda each: each.at_least):
        if each.elements > _MOST_RUN:
            continue
        if shortest is not None and each.at_least >= shortest:
            return
        report = simulate(each.program, mode="timing", on_deadlock="describe")
        if report.status == "completed":
            assert report.cycles is not None
            shortest = min(report.cycles, shortest or report.cycles)
            yield each, report


def _sized(chosen: _Tried, report: Report | None) -> str:
    """Give the channels of a program the depths they need; say what was done."""
    program = chosen.program
    if report is None:
        return "channels not sized"
    assert report.elements is not None
    if report.elements <= _MOST_SIZED:
        sizing = size(program, goal="same-cycles")
        for option, depth in sizing.depths.items():
            program.deepen(option, depth)
        return f"channels sized ({sizing.truth})"
    for channel in report.channels_counters:
        option = channel.name.split(" -> ")[1]
        if channel.peak_occupancy < program.depth_of(option):
            program.deepen(option, max(1, channel.peak_occupancy))
    return "channels as deep as a run has filled them"


def _elements(program: Program) -> int:
    types = [each for node in program.nodes for each in node.input_types]
    return sum(number_of(program, each.count) or 0 for each in types)

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fabric import simulate
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from tests.benchmarks.points import (
    Point,
    attention_points,
    closed_form_points,
    moe_points,
    printed_attention_points,
    printed_moe_points,
)
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

FAST = (3, 4, 14, 18, 20)
"""Static and dynamic tiling, a long run, and time-multiplexing, of the reference settings."""

PRINTED_QUICK = (4, 8, 9, 18, 21, 22)
"""Dynamic tiles of batch 64, a static one, and time-multiplexing, of the printed points."""

QUICK = (*range(6, 9), *range(12, 15), *range(24, 54))
"""Attention: a trace of 64 requests of each class, and all of 16 requests."""


def points(series: Callable[[], Iterator[Point]]) -> list[Point]:
    return list(series())


def check(point: Point) -> None:
    hardware = load_hardware(PROGRAMS / "hardware" / point.hardware)
    report = simulate(load_program(PROGRAMS / point.program, point.parameters, hardware).program)
    found = report.as_json() | report.extra

    assert report.status == "completed"
    assert {bound.field for bound in point.bounds} <= found.keys()
    assert [] == [
        (bound, found[bound.field])
        for bound in point.bounds
        if abs(found[bound.field] - bound.value) > bound.slack
    ]


@pytest.mark.parametrize("number", spread(QUICK, 4))
def test_attention_has_the_published_cycles(number: int) -> None:
    check(points(attention_points)[number])


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", sorted(set(range(54)) - set(QUICK)))
def test_other_attention_has_the_published_cycles(number: int) -> None:
    check(points(attention_points)[number])


@pytest.mark.parametrize("number", spread(FAST, 1))
def test_moe_has_the_published_cycles(number: int) -> None:
    check(points(moe_points)[number])


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", sorted(set(range(21)) - set(FAST)))
def test_other_moe_has_the_published_cycles(number: int) -> None:
    check(points(moe_points)[number])


@pytest.mark.parametrize("number", spread(range(8), 1))
def test_attention_has_the_printed_cycles(number: int) -> None:
    check(points(printed_attention_points)[number])


@pytest.mark.parametrize("number", spread(PRINTED_QUICK, 1))
def test_moe_has_the_printed_cycles(number: int) -> None:
    check(points(printed_moe_points)[number])


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", sorted(set(range(26)) - set(PRINTED_QUICK)))
def test_other_moe_has_the_printed_cycles(number: int) -> None:
    check(points(printed_moe_points)[number])


def test_every_printed_point_is_listed() -> None:
    assert 26 == len(points(printed_moe_points))
    assert 8 == len(points(printed_attention_points))


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(26))
def test_moe_has_the_published_closed_forms(number: int) -> None:
    check(points(closed_form_points)[number])

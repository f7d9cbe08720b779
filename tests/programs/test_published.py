from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from fabric import simulate
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from tests.benchmarks import points
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

Series: TypeAlias = Callable[[], Iterator[points.Point]]
SERIES = (
    (points.attention_points, 54, (*range(6, 9), *range(12, 15), *range(24, 54)), 4),
    (points.moe_points, 21, (3, 4, 14, 18, 20), 1),
    (points.printed_attention_points, 8, range(8), 1),
    (points.printed_moe_points, 26, (4, 8, 9, 18, 21, 22), 1),
    (points.closed_form_points, 26, (), 0),
)
"""Series of points, their number, quick points, and how many quick points run by default.

The quick points of attention are one trace of 64 requests of each class, and all traces of 16
requests. The quick points of layers are static and dynamic tiles, a long run, and
time-multiplexing.
"""


def check(point: points.Point) -> None:
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


@pytest.mark.parametrize(
    ("series", "number"),
    [
        case
        for series, _, quick, default in SERIES
        for case in spread(((series, number) for number in quick), default)
    ],
)
def test_points_have_the_published_numbers(series: Series, number: int) -> None:
    check(list(series())[number])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("series", "number"),
    [
        (series, number)
        for series, count, quick, _ in SERIES
        for number in range(count)
        if number not in quick
    ],
)
def test_long_points_have_the_published_numbers(series: Series, number: int) -> None:
    check(list(series())[number])


def test_every_point_is_listed() -> None:
    assert [count for _, count, *_ in SERIES] == [len(list(series())) for series, *_ in SERIES]

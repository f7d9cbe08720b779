"""Joins and Scatter: cycles worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import (
    Hardware,
    Program,
    Stream,
    hardware_scope,
    simulate,
)
from fabric.extend import OnChipDescription
from tests.operators.driving import ragged
from tests.operators.writing import Input, run

N, M = ragged(0), ragged(1)


def coordinates(text: str, *shape: Any) -> Input:
    return text, shape, op.INTEGER, lambda word: op.integer(int(word))


def number(value: Any) -> str:
    return f"{value.data.item():g}"


def first(join: op.Intersect | op.Union) -> Callable[..., Stream]:
    return lambda left, right: join(left, right)[0]


@pytest.mark.parametrize("join", [op.Intersect(), op.Union()])
def test_join_takes_a_cycle_for_each_distinct_coordinate(join: op.Intersect | op.Union) -> None:
    left = " ".join(map(str, range(8))) + " 10 11 12 13|S1"
    right = " ".join(map(str, range(8))) + " 20 21 22 23|S1"
    report, _ = run(first(join), coordinates(left, 1, N), coordinates(right, 1, M))
    (unit,) = (each for each in report.units if each.name == f"{type(join).__name__.lower()}_1")
    assert unit.busy_cycles == 16


def busy(operator: op.Scatter, places: Sequence[int], cols: int) -> int:
    with hardware_scope(Hardware(on_chip=OnChipDescription(bytes_per_cycle=64))):
        with Program("scatter", channel_depth=1000) as program:
            loaded = op.LinearOffChipLoad(np.ones((len(places), cols)), tile=(1, cols))()
            values = op.Flatten(0, 1)(loaded)
            op.Consumer()(operator(op.Metadata(np.array(places))(), values))
        report = simulate(program)
    assert report.status == "completed", report.error
    (unit,) = (each for each in report.units if each.name == "scatter_1")
    return unit.busy_cycles


@pytest.mark.parametrize(
    ("places", "banks", "width", "issued"),
    [
        ([0, 1, 2, 3], 4, 4, 1),  # each in another bank: the loads take 4
        ([0, 4, 0, 4], 4, 4, 4),  # all in one bank
        ([0, 1, 2, 3], 1, 4, 4),
        ([0, 1, 2, 3], 4, 2, 2),
        ([0, 4, 1], 4, 2, 3),  # the last one is issued alone
        ([0, 1, 2, 3, 4], 4, 1, 5),
    ],
)
def test_scatter_issue_takes_its_fullest_bank(
    places: list[int], banks: int, width: int, issued: int
) -> None:
    scatter = op.Scatter(8, banks=banks, width=width)
    loads = len(places)
    assert max(issued, loads) + 8 == busy(scatter, places, 32)


@pytest.mark.parametrize(("banks", "taken"), [(1, 4), (2, 2), (4, 1)])
def test_scatter_updates_banks_in_parallel(banks: int, taken: int) -> None:
    with Program("scatter", channel_depth=1000) as program:
        numbers = op.Metadata(np.arange(4))()
        op.Consumer()(op.Scatter(4, banks=banks, width=4)(numbers, numbers))
    report = simulate(program)
    (unit,) = (each for each in report.units if each.name == "scatter_1")
    assert unit.busy_cycles == taken + 4


def test_scatter_of_wide_words_takes_their_transfers() -> None:
    assert 4 * 2 + 4 * 3 == busy(op.Scatter(3), [1, 2], 128)


def test_scatter_runs_in_timing_mode() -> None:
    with Program("scatter") as program:
        numbers = op.Metadata(np.array([2, 2, 5]))()
        where = op.Scatter(6, "max")(numbers, numbers)
        op.Consumer()(op.Scatter(9)(where, where))
    assert simulate(program, mode="timing").status == "completed"

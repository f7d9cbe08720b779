"""Joins and Scatter by hand: streams as text, cycles that were counted, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fabric import (
    Hardware,
    Program,
    Stream,
    Tile,
    TileType,
    TupleType,
    hardware_scope,
    simulate,
)
from fabric.extend import OnChipDescription
from operators import (
    INTEGER,
    Consumer,
    Flatten,
    Intersect,
    LinearOffChipLoad,
    Metadata,
    Scatter,
    Union,
    integer,
)
from tests.operators.driving import FLOAT, ragged, tile
from tests.operators.writing import Input, run

N, M = ragged(0), ragged(1)


def coordinates(text: str, *shape: Any) -> Input:
    """A stream of coordinates."""
    return text, shape, INTEGER, lambda word: integer(int(word))


def number(value: Any) -> str:
    """Show a tile of one number."""
    return f"{value.data.item():g}"


def first(join: Intersect | Union) -> Callable[..., Stream]:
    """Return what wires a join of which only the coordinates are read."""
    return lambda left, right: join(left, right)[0]


class TestJoin:
    @pytest.mark.parametrize(
        ("left", "right", "common", "either"),
        [
            ("1 4|S2", "4 5|S2", "4 -0|S2", "1 4 5|S2"),
            ("1 4|S2", "2 4|S2", "4|S2", "1 2 4|S2"),
            ("1|S1 2|S2", "1|S1 3|S2", "1|S1 -0|S2", "1|S1 2 3|S2"),
            ("-0|S1 2|S2", "7|S1 -0|S2", "-0|S1 -0|S2", "7|S1 2|S2"),
            ("-0|S1 -0|S2", "-0|S1 -0|S2", "-0|S1 -0|S2", "-0|S1 -0|S2"),
            # Closed late: by a bare stop of its own, on one side or on both.
            ("1 4 -0|S1 5|S2", "4|S1 5|S2", "4 -0|S1 5|S2", "1 4 -0|S1 5|S2"),
            ("1|S1 2|S1 -1|S2", "1|S1 2|S2", "1|S1 2|S2", "1|S1 2|S2"),
            ("1|S1 -1|S2", "1|S1 -1|S2", "1|S1 -1|S2", "1|S1 -1|S2"),
            ("-1|S2", "-1|S2", "-1|S2", "-1|S2"),
        ],
    )
    def test_stops(self, left: str, right: str, common: str, either: str) -> None:
        """A group of each side for a group of the output, however it is closed."""
        inputs = coordinates(left, 1, N, M), coordinates(right, 1, N, ragged(2))
        for join, expected in ((Intersect(), common), (Union(), either)):
            report, (found,) = run(first(join), *inputs, show=number)
            assert report.status == "completed", report.error
            assert found == expected

    @pytest.mark.parametrize("join", [Intersect(), Union()])
    def test_cycles(self, join: Intersect | Union) -> None:
        """A cycle for each distinct coordinate: 12 and 12, 8 of them in common."""
        left = " ".join(map(str, range(8))) + " 10 11 12 13|S1"
        right = " ".join(map(str, range(8))) + " 20 21 22 23|S1"
        report, _ = run(first(join), coordinates(left, 1, N), coordinates(right, 1, M))
        (unit,) = (each for each in report.units if each.name == f"{type(join).__name__.lower()}_1")
        assert unit.busy_cycles == 16

    @pytest.mark.parametrize(
        ("left", "right", "told"),
        [
            (
                "1 4 4|S1",
                "9|S1",
                "coordinate 4 of emit_1 comes after 4 in one group: expected coordinates that "
                "ascend, each once",
            ),
            (
                "9|S1",
                "5 3|S1",
                "coordinate 3 of emit_2 comes after 5 in one group: expected coordinates that "
                "ascend, each once",
            ),
        ],
    )
    def test_not_sorted(self, left: str, right: str, told: str) -> None:
        """Who sent what, after what."""
        for join in (Intersect(), Union()):
            report, _ = run(first(join), coordinates(left, 1, N), coordinates(right, 1, M))
            assert report.error is not None
            assert told in report.error["message"]

    @pytest.mark.parametrize(
        ("left", "right"),
        [("1|S1 2|S2", "1|S2"), ("1|S2", "-1|S2"), ("1|S1 -1|S2", "1|S1 2|S2")],
    )
    def test_other_structures(self, left: str, right: str) -> None:
        """As many groups on both sides."""
        inputs = coordinates(left, 1, N, M), coordinates(right, 1, N, ragged(2))
        report, _ = run(first(Intersect()), *inputs)
        assert report.error is not None
        assert "expected equal structures" in report.error["message"]

    @pytest.mark.parametrize(
        ("left", "right", "ended", "more"),
        [("1|S1", "1|S1 2|S1", 1, 2), ("3|S1 4|S1", "3|S1", 2, 1)],
    )
    def test_one_side_has_ended(self, left: str, right: str, ended: int, more: int) -> None:
        """Another group of the other one is told, with where each side stands."""
        inputs = coordinates(left, N, M), coordinates(right, N, ragged(2))
        for join in (Intersect(), Union()):
            report, _ = run(first(join), *inputs)
            assert report.error is not None
            message = report.error["message"]
            assert f"the end of emit_{ended} at [1, 0]" in message
            assert f" at [1, 0] of emit_{more} closes 1 dimension" in message
            assert ": expected equal structures" in message

    def test_several_payloads(self) -> None:
        """They stay together; where a coordinate is missing each of them is the filler."""

        def some(word: str) -> tuple[Tile, ...]:
            return integer(int(word)), tile(10 * int(word)), tile(-int(word))

        def shown(value: Any) -> str:
            return "/".join(map(number, value)) if isinstance(value, tuple) else number(value)

        three = TupleType((INTEGER, FLOAT, FLOAT))
        inputs = ("1 4|S1", (1, N), three, some), coordinates("4 5|S1", 1, M)
        _, common = run(Intersect(), *inputs, show=shown)
        # The group may go on behind 4.
        assert ["4 -0|S1", "40/-4 -0|S1", "4 -0|S1"] == common
        _, either = run(Union(filler=7), *inputs, show=shown)
        assert ["1 4 5|S1", "10/-1 40/-4 7/7|S1", "7 4 5|S1"] == either


def busy(operator: Scatter, places: Sequence[int], cols: int) -> int:
    """Return the busy cycles of a Scatter of one group."""
    with hardware_scope(Hardware(on_chip=OnChipDescription(bytes_per_cycle=64))):
        with Program("scatter", channel_depth=1000) as program:
            loaded = LinearOffChipLoad(np.ones((len(places), cols)), tile=(1, cols))()
            values = Flatten(0, 1)(loaded)
            Consumer()(operator(Metadata(np.array(places))(), values))
        report = simulate(program)
    assert report.status == "completed", report.error
    (unit,) = (each for each in report.units if each.name == "scatter_1")
    return unit.busy_cycles


class TestScatter:
    @pytest.mark.parametrize(
        ("places", "banks", "width", "issued"),
        [
            ([0, 1, 2, 3], 4, 4, 1),  # each in a bank of its own: the loads take 4
            ([0, 4, 0, 4], 4, 4, 4),  # all in one bank
            ([0, 1, 2, 3], 1, 4, 4),
            ([0, 1, 2, 3], 4, 2, 2),
            ([0, 4, 1], 4, 2, 3),  # the last one is issued alone
            ([0, 1, 2, 3, 4], 4, 1, 5),
        ],
    )
    def test_conflicts(self, places: list[int], banks: int, width: int, issued: int) -> None:
        """An issue takes as long as its fullest bank, and no less than its loads."""
        scatter = Scatter(8, banks=banks, width=width)
        loads = len(places)
        assert max(issued, loads) + 8 == busy(scatter, places, 32)

    @pytest.mark.parametrize(("banks", "taken"), [(1, 4), (2, 2), (4, 1)])
    def test_banks(self, banks: int, taken: int) -> None:
        """Values that come from no memory: four of them in as many cycles as banks leave."""
        with Program("scatter", channel_depth=1000) as program:
            numbers = Metadata(np.arange(4))()
            Consumer()(Scatter(4, banks=banks, width=4)(numbers, numbers))
        report = simulate(program)
        (unit,) = (each for each in report.units if each.name == "scatter_1")
        assert unit.busy_cycles == taken + 4

    def test_wide_words(self) -> None:
        """A word of 256 bytes takes four cycles in its bank, and four to be read."""
        assert 4 * 2 + 4 * 3 == busy(Scatter(3), [1, 2], 128)

    def test_numbers_without_data(self) -> None:
        """Integers are there in timing mode, too."""
        with Program("scatter") as program:
            numbers = Metadata(np.array([2, 2, 5]))()
            where = Scatter(6, "max")(numbers, numbers)
            Consumer()(Scatter(9)(where, where))
        assert simulate(program, mode="timing").status == "completed"

    def test_out_of_range(self) -> None:
        """Which word, of how many, and when."""
        report, _ = run(
            Scatter(4), coordinates("1 4|S1", 1, N), coordinates("1 1|S1", 1, N), show=number
        )
        assert report.error is not None
        assert "an update of word 4 of 4: expected 0 to 3" in report.error["message"]

    def test_capacity(self) -> None:
        """All words have to find room on chip."""
        with hardware_scope(Hardware(on_chip=OnChipDescription(capacity_bytes=100))):
            with Program("scatter") as program:
                numbers = Metadata(np.arange(4))()
                Consumer()(Scatter(32)(numbers, numbers))
            report = simulate(program)
        assert report.error is not None
        assert "a memory of words takes 256 bytes" in report.error["message"]

    @pytest.mark.parametrize("update", ["add", "max", "min"])
    def test_against_numpy(self, update: str) -> None:
        """The unbuffered updates of numpy give the same."""
        random = np.random.default_rng(3)
        places, numbers = random.integers(0, 7, 50), random.integers(-99, 99, 50)
        expected = np.full(7, 5.0)
        {"add": np.add, "max": np.maximum, "min": np.minimum}[update].at(expected, places, numbers)
        value = TileType(1, 1, np.dtype(np.float64))
        text = " ".join(map(str, numbers + 200)) + "|S1"

        def made(word: str) -> Any:
            return Tile(1, 1, value.dtype, np.array([[float(word) - 200]]))

        report, (found,) = run(
            Scatter(7, update, banks=2, width=3, initial=5.0),  # type: ignore[arg-type]
            coordinates(" ".join(map(str, places)) + "|S1", 1, 50),
            (text, (1, 50), value, made),
            show=number,
        )
        assert report.status == "completed", report.error
        assert found.split("|")[0].split() == [f"{each:g}" for each in expected]

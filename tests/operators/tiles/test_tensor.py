"""When the data of tensors are made, who shares them, and when they are dropped."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

from fabric import Program, Report, Tile, dtype_named, simulate
from operators import (
    Consumer,
    LinearOffChipLoad,
    Metadata,
    RandomOffChipLoad,
    RandomOffChipStore,
    Tensor,
)
from tests.operators.driving import Collect

NUMBERS = np.arange(16.0).reshape(4, 4) / 8


class Made:
    """Makes an array and remembers, without holding it, what it made."""

    def __init__(self) -> None:
        self.arrays: list[weakref.ref[Any]] = []

    def __call__(self) -> Any:
        """Make it."""
        array = NUMBERS.copy()
        self.arrays.append(weakref.ref(array))
        return array

    @property
    def times(self) -> int:
        """How often it was asked."""
        return len(self.arrays)

    @property
    def held(self) -> int:
        """How many of its arrays are still there."""
        return sum(each() is not None for each in self.arrays)


def run(program: Program, mode: str = "functional") -> Report:
    """Run to the end."""
    report = simulate(program, mode=mode)
    assert report.status == "completed"
    return report


def loads(tensor: Tensor, count: int) -> Program:
    """Load all of ``tensor`` ``count`` times."""
    with Program("loads") as program:
        for _ in range(count):
            Consumer()(LinearOffChipLoad(tensor, tile=(2, 2))())
    return program


class TestElements:
    @pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
    def test_loads_share_them(self, dtype: str) -> None:
        """Three loads of four tiles ask once, and the array goes when it has been converted."""
        made = Made()
        run(loads(Tensor((4, 4), made, dtype=dtype), 3))

        assert (1, 0) == (made.times, made.held)

    def test_timing_mode_makes_none(self) -> None:
        """There is no data in it."""
        made = Made()
        run(loads(Tensor((4, 4), made), 2), "timing")

        assert made.times == 0

    @pytest.mark.parametrize(
        ("dtype", "tile", "times"),
        [
            ("int32", (1, 1), 1), ("uint8", (1, 1), 1), ("int32", (1, 2), 0), ("int32", (2, 1), 0),
            ("float32", (1, 1), 0), ("bool", (1, 1), 0), (None, (1, 1), 0),
        ],
    )  # fmt: skip
    def test_timing_mode_has_integers(
        self, dtype: str | None, tile: tuple[int, int], times: int
    ) -> None:
        """Of single integers it makes the data: they may be addresses."""
        made: list[Any] = []

        def data() -> Any:
            made.append(None)
            return np.ones((2, 2))

        with Program("integers") as program:
            Consumer()(LinearOffChipLoad(Tensor((2, 2), data, dtype=dtype), tile)())
        run(program, "timing")
        assert times == len(made)

    def test_what_nobody_reads_is_not_made(self) -> None:
        """A load without addresses reads no tile."""
        made = Made()
        with Program("none") as program:
            none = Metadata(np.zeros(0, np.int64))()
            Consumer()(RandomOffChipLoad(Tensor((4, 4), made), (2, 2))(none))
        run(program)

        assert made.times == 0

    def test_a_store_shares_them_with_loads(self) -> None:
        """What was there before is not changed by what is stored."""
        made = Made()
        tensor = Tensor((4, 4), made, dtype="float32")
        seen: list[Any] = []
        with Program("store") as program:
            address = Metadata(np.array([0, 0]))()
            tiles = RandomOffChipLoad(tensor, (2, 2))(Metadata(np.array([3, 3]))())
            RandomOffChipStore("y", tensor, (2, 2))(address, tiles)
            Collect(seen)(RandomOffChipLoad(tensor, (2, 2))(Metadata(np.array([0, 0, 0]))()))
        program.expect(y=lambda: np.block([[NUMBERS[2:, 2:], NUMBERS[:2, 2:]], [NUMBERS[2:]]]))

        assert run(program).verified is True
        assert made.times == 1
        for tile, _ in seen:
            assert NUMBERS[:2, :2].tolist() == tile.data.tolist()

    def test_they_are_dropped_with_the_last_reader(self) -> None:
        """Held by the program, they outlast the run; then the next run makes them anew."""
        made = Made()
        tensor = Tensor((4, 4), made, dtype="float32")
        elements = tensor.elements()
        run(loads(tensor, 1))
        float32 = dtype_named("float32")
        kept = weakref.ref(elements.of(float32))
        assert made.times == 1
        assert NUMBERS.tolist() == elements.of(float32).tolist()

        del elements
        assert kept() is None
        run(loads(tensor, 1))
        assert made.times == 2

    def test_nobody_can_change_them(self) -> None:
        """They are shared."""
        elements = Tensor((4, 4), NUMBERS).elements()
        with pytest.raises(ValueError, match="read-only"):
            elements.of(dtype_named("float32"))[0, 0] = 1


@pytest.mark.parametrize("constant", [True, False])
def test_constant_arrays_are_not_copied(constant: bool) -> None:
    """Of an array that cannot be written to tiles are parts; others may change during the run."""
    array = NUMBERS.astype(np.float32)
    array.flags.writeable = not constant
    seen: list[tuple[Tile, int]] = []
    with Program("copies") as program:
        Collect(seen)(LinearOffChipLoad(Tensor((4, 4), array, dtype="float32"), tile=(2, 2))())
    run(program)

    tiles: list[Any] = [tile.data for tile, _ in seen]
    assert [constant] * 4 == [np.shares_memory(each, array) for each in tiles]

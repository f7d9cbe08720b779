from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Program, Report, Tile, dtype_named, simulate
from tests.operators.driving import Collect

NUMBERS = np.arange(16.0).reshape(4, 4) / 8


class Made:
    def __init__(self) -> None:
        self.arrays: list[weakref.ref[Any]] = []

    def __call__(self) -> Any:
        array = NUMBERS.copy()
        self.arrays.append(weakref.ref(array))
        return array

    @property
    def times(self) -> int:
        return len(self.arrays)

    @property
    def held(self) -> int:
        return sum(each() is not None for each in self.arrays)


def run(program: Program, mode: str = "functional") -> Report:
    report = simulate(program, mode=mode)
    assert report.status == "completed"
    return report


def loads(tensor: op.Tensor, count: int) -> Program:
    with Program("loads") as program:
        for _ in range(count):
            op.Consumer()(op.LinearOffChipLoad(tensor, tile=(2, 2))())
    return program


class TestElements:
    @pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
    def test_loads_share_the_data(self, dtype: str) -> None:
        made = Made()
        run(loads(op.Tensor((4, 4), made, dtype=dtype), 3))

        assert (1, 0) == (made.times, made.held)

    @pytest.mark.parametrize(
        ("dtype", "tile", "times"),
        [
            ("int32", (1, 1), 1), ("uint8", (1, 1), 1), ("int32", (1, 2), 0), ("int32", (2, 1), 0),
            ("float32", (1, 1), 0), ("bool", (1, 1), 0), (None, (1, 1), 0),
        ],
    )  # fmt: skip
    def test_timing_mode_makes_single_integers(
        self, dtype: str | None, tile: tuple[int, int], times: int
    ) -> None:
        made: list[Any] = []

        def data() -> Any:
            made.append(None)
            return np.ones((2, 2))

        with Program("integers") as program:
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((2, 2), data, dtype=dtype), tile)())
        run(program, "timing")
        assert times == len(made)

    def test_store_does_not_change_data_of_loads(self) -> None:
        made = Made()
        tensor = op.Tensor((4, 4), made, dtype="float32")
        seen: list[Any] = []
        with Program("store") as program:
            address = op.Metadata(np.array([0, 0]))()
            tiles = op.RandomOffChipLoad(tensor, (2, 2))(op.Metadata(np.array([3, 3]))())
            op.RandomOffChipStore("y", tensor, (2, 2))(address, tiles)
            Collect(seen)(op.RandomOffChipLoad(tensor, (2, 2))(op.Metadata(np.array([0, 0, 0]))()))
        program.expect(y=lambda: np.block([[NUMBERS[2:, 2:], NUMBERS[:2, 2:]], [NUMBERS[2:]]]))

        assert run(program).verified is True
        assert made.times == 1
        for tile, _ in seen:
            assert NUMBERS[:2, :2].tolist() == tile.data.tolist()

    def test_data_are_dropped_with_the_last_reader(self) -> None:
        made = Made()
        tensor = op.Tensor((4, 4), made, dtype="float32")
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

    def test_shared_data_are_read_only(self) -> None:
        elements = op.Tensor((4, 4), NUMBERS).elements()
        with pytest.raises(ValueError, match="read-only"):
            elements.of(dtype_named("float32"))[0, 0] = 1


@pytest.mark.parametrize("constant", [True, False])
def test_constant_arrays_are_not_copied(constant: bool) -> None:
    array = NUMBERS.astype(np.float32)
    array.flags.writeable = not constant
    seen: list[tuple[Tile, int]] = []
    with Program("copies") as program:
        Collect(seen)(
            op.LinearOffChipLoad(op.Tensor((4, 4), array, dtype="float32"), tile=(2, 2))()
        )
    run(program)

    tiles: list[Any] = [tile.data for tile, _ in seen]
    assert [constant] * 4 == [np.shares_memory(each, array) for each in tiles]

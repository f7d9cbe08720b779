"""The hardware functions of the decoder, against numpy and scipy, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from fabric import (
    Hardware,
    Program,
    Report,
    ShapeError,
    Stream,
    hardware_scope,
    simulate,
)
from fabric.extend import TileDescription
from operators import (
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Partition,
    Promote,
    Selectors,
    Tensor,
)
from tests.programs.loading import PROGRAMS

FLOAT32 = Hardware(tile=TileDescription(dtype="float32"))


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROGRAMS))


def normal(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def load(array: NDArray[Any], dtype: str | None = None) -> Stream:
    rows, cols = array.shape
    return LinearOffChipLoad(Tensor(array.shape, array, dtype=dtype), tile=(rows, cols))()


def run(wire: Callable[[], Stream], wanted: NDArray[Any]) -> Report:
    with hardware_scope(FLOAT32), Program("function", mode="functional") as program:
        LinearOffChipStore("y")(wire())
    program.expect(y=lambda: wanted)
    return simulate(program)


class TestRmsNorm:
    def test_value(self) -> None:
        from functions.decoder import EPSILON, RmsNorm

        x = normal(3, 8)
        groups = x.reshape(3, 2, 4)
        wanted = groups / np.sqrt(np.square(groups).mean(axis=2, keepdims=True) + EPSILON)

        assert run(lambda: Map(RmsNorm(4))(load(x)), wanted.reshape(3, 8)).verified is True

    def test_width(self) -> None:
        from functions.decoder import RmsNorm

        with pytest.raises(ShapeError) as caught, Program("function"):
            Map(RmsNorm(3))(load(normal(3, 8)))
        assert caught.value.message == (
            "RmsNorm of width 3 is given 3x8 bfloat16: expected a multiple of it in columns"
        )


class TestRotary:
    def test_value(self) -> None:
        from functions.decoder import Rotary

        x, positions = normal(3, 8), np.array([[0], [5], [1000]])
        pairs = x.reshape(3, 2, 2, 2)
        numbers = pairs[:, :, 0] + 1j * pairs[:, :, 1]
        turned = numbers * np.exp(1j * positions * np.array([1, 0.1]))[:, np.newaxis] / 2
        wanted = np.stack([turned.real, turned.imag], axis=2).reshape(3, 8)
        rotary = Map(Rotary(4, 100.0, scale=0.5))

        assert run(lambda: rotary(load(x), load(positions, "int64")), wanted).verified is True

    @pytest.mark.parametrize(
        ("width", "rows", "message"),
        [
            (
                3,
                3,
                "Rotary of width 3 is given 3x8 bfloat16: expected an even width, and a "
                "multiple of it in columns",
            ),
            (4, 2, "Rotary is given 3x8 bfloat16 and 2x1 int64: expected a position for each row"),
        ],
    )
    def test_shapes(self, width: int, rows: int, message: str) -> None:
        from functions.decoder import Rotary

        with pytest.raises(ShapeError) as caught, Program("function"):
            Map(Rotary(width, 100.0))(load(normal(3, 8)), load(np.zeros((rows, 1), int)))
        assert message == caught.value.message


class TestRouter:
    def test_gates(self) -> None:
        from functions.router import Gates

        logits = normal(5, 8)
        third = np.sort(logits, axis=1)[:, -3:-2]
        wanted = softmax(np.where(logits >= third, logits, -np.inf), axis=1)

        assert run(lambda: Map(Gates(3))(load(logits)), wanted).verified is True

    def test_choice(self) -> None:
        from functions.router import Chosen

        gates = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])

        def wired() -> Program:
            with hardware_scope(FLOAT32), Program("function") as program:
                rows = Flatten(0, 1)(LinearOffChipLoad(gates, tile=(1, 2))())
                given = Selectors(np.zeros((3, 1), int), width=2)()
                first, second = Partition(2)(rows, Map(Chosen(1))(rows, given))
                LinearOffChipStore("first")(Promote(0)(first))
                LinearOffChipStore("second")(Promote(0)(second))
            program.expect(first=lambda: gates[[1]], second=lambda: gates[[0, 2]])
            return program

        assert simulate(wired(), mode="functional").verified is True
        timing = simulate(wired(), mode="timing")
        taken = {each.name.split()[-1]: each.elements for each in timing.channels_counters}
        assert (3, 0) == (taken["promote_1.0"], taken["promote_2.0"])

    def test_choice_of_something_else(self) -> None:
        from functions.router import Chosen

        selectors = Selectors(np.zeros((1, 1, 1), int), width=3)
        with pytest.raises(ShapeError) as caught, Program("function"):
            Map(Chosen(1))(load(np.ones((1, 2))), selectors())
        assert caught.value.message == (
            "Map(Chosen) is given 1x2 bfloat16 and selector of 3: "
            "expected a row of gates and a selector of as many"
        )

    def test_weigh(self) -> None:
        from functions.router import Weigh

        gates, row = normal(1, 4), normal(1, 8)

        assert run(lambda: Map(Weigh(2))(load(gates), load(row)), gates[0, 2] * row).verified

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from typing_extensions import override

from fabric import Dim, Program, Report, ShapeError, Stream, Tile, TileType, simulate
from fabric.extend import Wiring
from operators import (
    Accum,
    FlatMap,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Reduction,
    Split,
    Sum,
    Tensor,
)

X = np.arange(64, dtype=np.float32).reshape(4, 16)
F32 = X.dtype


def _ones(rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.ones((rows, cols), dtype)


@dataclass(frozen=True)
class Returns(Function):
    result: Callable[[Tile], Any]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Any) -> Any:
        return inputs[0].rows * inputs[0].cols

    @override
    def apply(self, *inputs: Tile) -> Any:
        return self.result(inputs[0])


@dataclass(frozen=True)
class Costly(Returns):
    operations: Any = None

    @override
    def flops(self, *inputs: Any) -> Any:
        return self.operations if isinstance(inputs[0], Tile) else 0


@dataclass(frozen=True)
class Finishes(Sum):
    result: Any = None

    @override
    def finish(self, *inputs: Any) -> Any:
        return self.result


@dataclass(frozen=True)
class InPlace(Reduction):
    operands: ClassVar = 1

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Any) -> Any:
        return 1

    @override
    def start(self, result: Any, functional: bool) -> Any:
        return None

    @override
    def update(self, state: Any, *inputs: Tile) -> Any:
        if state is None:
            return inputs[0].data
        state += inputs[0].data
        return state

    @override
    def finish(self, state: Any, result: Any, functional: bool) -> Tile:
        return Tile(1, 16, F32, state)


@dataclass(frozen=True)
class Parts(Split):
    rank: ClassVar[int] = 1

    parts: Any

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        return (count, 2), tile

    @override
    def apply(self, tile: Tile) -> Any:
        return self.parts


def _in_place(tile: Tile) -> Tile:
    assert tile.data is not None
    tile.data += 1
    return tile


PART = Tile(1, 16, F32, _ones(1, 16))
SHAPE = "expected an array of 1x16 float32"
ROWS: dict[str, tuple[Any, str, str]] = {
    "None": (
        Map(Returns(lambda _: None)),
        "apply",
        "result 0 of Returns.apply is None: expected a Tile of 1x16 float32 ({at}), at cycle 20",
    ),
    "another shape": (
        Map(Returns(lambda _: Tile(2, 16, F32, _ones(2, 16)))),
        "apply",
        "result 0 of Returns.apply is a Tile of 2x16: expected 1x16 float32 ({at}), at cycle 20",
    ),
    "no data": (
        Map(Returns(lambda _: Tile(1, 16, F32))),
        "apply",
        f"result 0 of Returns.apply is Tile(1x16 float32) without data: {SHAPE} ({{at}}), "
        "at cycle 20",
    ),
    "in place": (
        Map(Returns(_in_place)),
        "",
        "ValueError: output array is read-only ({added}), at cycle 20, element 0",
    ),
    "operations": (
        Map(Costly(lambda tile: tile)),
        "apply",
        "TypeError: None FLOPs are computed: expected an integer ({at}), at cycle 20, element 0",
    ),
    "a reduction": (
        Accum(Finishes()),
        "finish",
        "result 0 of Finishes.finish is None: expected a Tile of 1x16 float32 ({at}), at cycle 21",
    ),
    "a reduction in place": (
        Accum(InPlace(), rank=2),
        "",
        "ValueError: output array is read-only ({summed}), at cycle 39, element 1",
    ),
    "parts with too much": (
        FlatMap(Parts([(PART, 0, 1)])),
        "apply",
        "result 0 of Parts.apply is a list whose item 0 is (Tile(1x16 float32), 0, 1): expected a "
        "tuple (part, level of the stop) ({at}), at cycle 20",
    ),
    "parts that close nothing": (
        FlatMap(Parts([(PART, 0)])),
        "apply",
        "result 0 of Parts.apply is a list whose last stop is of level 0: expected 1, the rank of "
        "the split ({at}), at cycle 20",
    ),
}


def _report(operator: Any) -> Report:
    with Program("promises", mode="functional") as program:
        rows: Stream = LinearOffChipLoad(Tensor(X.shape, X, dtype="float32"), tile=(1, 16))()
        LinearOffChipStore("y")(replace(operator, name="wrong")(rows))
    return replace(simulate(program), wall_seconds=None)


def _function(operator: Any) -> Any:
    return next(v for v in vars(operator).values() if type(v).__module__ == __name__)


def _line(text: str) -> str:
    lines = inspect.getsource(inspect.getmodule(_ones)).splitlines()  # type: ignore[arg-type]
    return f"{__file__}:{next(n for n, line in enumerate(lines, 1) if line.strip() == text)}"


@pytest.mark.parametrize("name", ROWS)
def test_broken_promise_is_reported_at_its_method(name: str) -> None:
    operator, method, message = ROWS[name]
    report = _report(operator)
    at = ""
    if method:
        code = getattr(_function(operator), method).__code__
        at = f"{code.co_filename}:{code.co_firstlineno}"
    expected = message.format(
        at=at,
        added=_line("tile.data += 1"),
        summed=_line("state += inputs[0].data"),
    )

    assert report.error is not None
    assert (f"wrong: {expected}", 1) == (report.error["message"], report.exit_status)
    assert _line('LinearOffChipStore("y")(replace(operator, name="wrong")(rows))') == (
        f"{report.error['file']}:{report.error['line']}"
    )


def test_function_in_place_does_not_change_its_tensor() -> None:
    before = X.copy()
    _report(Map(Returns(_in_place)))

    assert np.array_equal(before, X)


class OfAnyNumber(InPlace):
    operands: ClassVar = None  # type: ignore[assignment]  # what a Reduction may say


@pytest.mark.parametrize("function", [Returns(lambda tile: tile), OfAnyNumber()])
def test_no_operand_is_refused(function: Function | Reduction) -> None:
    with pytest.raises(ShapeError, match=r"^what is given nothing: expected 1 tile"):
        function.check("what", ())

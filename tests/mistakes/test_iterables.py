"""Numbers are accepted from lists, arrays and iterators; masked elements are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fabric as fab
import operators
from fabric.serving import Requests as TypedRequests
from operators import Consumer, Function, Initial, LinearOffChipStore, Map, Streamify, Tensor

# Any: the parameters are typed as arrays and tuples.
Requests: Any = TypedRequests
LinearOffChipLoad: Any = operators.LinearOffChipLoad
Metadata: Any = operators.Metadata
RaggedIntegers: Any = operators.RaggedIntegers
Selectors: Any = operators.Selectors
axis: Any = fab.grid
shaped: Any = Tensor

Wrap = Callable[[Any], Any]

WRAPS: dict[str, Wrap] = {
    "tuple": tuple,
    "iter": iter,
    "generator": lambda items: (each for each in items),
    "array": np.array,
    "objects": lambda items: np.fromiter(items, object),
    "unmasked": lambda items: np.ma.array(np.array(items), mask=False),
}


def expected(wanted: Any, data: Any = ((1.0, 2.0),)) -> fab.Report:
    with fab.Program("copies", mode="functional") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(Tensor((1, 2), lambda: data), tile=(1, 2))())
    program.expect(y=lambda: wanted)
    return fab.simulate(program)


TAKERS: dict[str, Callable[[Wrap], Any]] = {
    "lists": lambda wrap: RaggedIntegers(wrap([wrap([1, 2]), wrap([3, 0])])).lists,
    "values": lambda wrap: Metadata(wrap([5, 0, 3])).values.tolist(),
    "choice": lambda wrap: Selectors(wrap([[0], [1]]), width=2).choice.tolist(),
    "tensor": lambda wrap: np.asarray(LinearOffChipLoad(wrap([[1, 2]]), (1, 2)).tensor).tolist(),
    "tile": lambda wrap: LinearOffChipLoad([[1, 2]], tile=wrap([1, 2])).tile,
    "shape": lambda wrap: Streamify(shape=wrap([2, 2]), strides=wrap([1, 1])).shape,
    "Tensor": lambda wrap: Tensor(wrap([2, 3])).shape,
    "Layout": lambda wrap: str(fab.Layout.tiled(wrap([8, 8]), tile=wrap([4, 2]))),
    "axis": lambda wrap: fab.grid(a=wrap([1, 2])).values,
    "arrivals": lambda wrap: Requests(wrap([0.5, 1.0]), [3, 4], [5, 6]).arrival_seconds.tolist(),
    "prompts": lambda wrap: Requests([0.0, 1.0], wrap([3, 4]), wrap([5, 6])).prompt_tokens.tolist(),
    "expect": lambda wrap: expected(wrap([[1.0, 2.0]])).verified,
    "data": lambda wrap: expected([[1.0, 2.0]], wrap([[1.0, 2.0]])).verified,
}


@pytest.mark.parametrize("taker", TAKERS)
def test_iterables_are_lists(taker: str) -> None:
    take = TAKERS[taker]
    wanted = take(list)
    assert [wanted] * len(WRAPS) == [take(wrap) for wrap in WRAPS.values()]


MASKED = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])


@dataclass(frozen=True)
class Hides(Function):
    def infer(self, x: fab.TileType) -> fab.TileType:
        return x

    def flops(self, x: fab.Tile) -> int:
        return x.rows * x.cols

    def apply(self, x: fab.Tile) -> fab.Tile:
        assert x.data is not None
        return fab.Tile(x.rows, x.cols, x.dtype, np.ma.array(x.data, mask=x.data > 0))


def masked_lists(lists: Any) -> None:
    with fab.Program("lists"):
        Consumer()(RaggedIntegers(lists)())


def masked_by_a_function() -> fab.Report:
    with fab.Program("hides", mode="functional") as program:
        LinearOffChipStore("y")(Map(Hides())(LinearOffChipLoad([[0.0, 2.0]], tile=(1, 2))()))
    return fab.simulate(program)


def masked_at_first() -> None:
    with fab.Program("first"):
        again = fab.Feedback(fab.StreamType((3,), fab.TileType(1, 2, fab.dtype_named("uint64"))))
        Consumer()(Initial(MASKED[:1], 1)(again))


@pytest.mark.parametrize(
    "take",
    [
        lambda: masked_lists(MASKED),
        lambda: masked_lists([MASKED[0]]),
        lambda: Metadata(MASKED),
        lambda: Metadata([1, np.ma.masked]),
        lambda: Selectors(MASKED, width=5),
        lambda: LinearOffChipLoad(MASKED, tile=(1, 2)),
        lambda: LinearOffChipLoad([[1, 2], MASKED[0]], tile=(1, 2)),
        lambda: LinearOffChipLoad([[1, 2]], tile=MASKED[0]),
        lambda: shaped(MASKED[0]),
        lambda: Tensor((2, 2), MASKED),
        lambda: fab.grid(a=MASKED[0]),
        lambda: axis(a=[np.ma.masked]),
        lambda: Requests(MASKED[0], [1, 2], [1, 2]),
        lambda: Requests([0, 1], MASKED[0], [1, 2]),
        lambda: expected(MASKED[:1]).raise_for_status(),
        lambda: expected([[1.0, 2.0]], MASKED[:1]).raise_for_status(),
        lambda: masked_by_a_function().raise_for_status(),
        masked_at_first,
    ],
)
def test_masked_elements_are_refused(take: Callable[[], object]) -> None:
    with pytest.raises(fab.FabricError, match=r"(?s)[Mm]ask.*: expected"):
        take()

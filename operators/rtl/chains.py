"""Chains of steps as hardware: one pipeline per chain, one stage per step.

A stage computes the shape of its step's result and the number of operations as Amaranth values.
Pointwise steps look up their operations per number in ``NUMBERS``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

# Any: amaranth has no types, and a step may be of any class.
from typing import Any, Final, NamedTuple, TypeAlias

from amaranth import Const, Mux

from operators.functions import choosing, row_functions, steps
from operators.functions.elementwise import NUMBERS
from operators.functions.steps import Chain
from operators.rtl.blocks import largest
from operators.rtl.compute import Function, Sizes

Shape: TypeAlias = tuple[Any, Any]
"""Rows and columns."""


class _Stage(NamedTuple):
    """A step of a pipeline.

    Attributes:
        name: a part of the module's name.
        numbers: further numbers that its hardware depends on.
        shape: returns the shape of the result, from the shapes of the operands.
        operations: returns the number of operations, from the shapes of the operands.
    """

    name: str
    numbers: tuple[Any, ...]
    shape: Callable[..., Shape]
    operations: Callable[..., Any]


def _none(*_: Shape) -> Any:
    return Const(0)


def _elements(shape: Shape) -> Any:
    rows, cols = shape
    return rows * cols


def _stretched(*shapes: Shape) -> Shape:
    """Return the broadcast shape of arrays; a size of 1 is stretched to the larger size."""
    found: list[Any] = []
    for sizes in zip(*shapes, strict=True):
        size, *others = sizes
        for other in others:
            size = Mux(size == 1, other, size)
        found.append(size)
    rows, cols = found
    return rows, cols


def _pointwise(step: Any) -> _Stage:
    each = NUMBERS[step.name].flops
    return _Stage(step.name, (), _stretched, lambda *given: _elements(_stretched(*given)) * each)


def _complex_product(_: Any) -> _Stage:
    return _Stage(
        "ComplexProduct", (), _stretched, lambda *given: _elements(_stretched(*given)) * 3
    )


def _cut(step: Any) -> _Stage:
    return _Stage("Cut", (step.count,), lambda x: (x[0], Const(step.count)), _none)


def _columns(step: Any) -> _Stage:
    count = len(step.places)
    return _Stage("Columns", (count,), lambda x: (x[0], Const(count)), _none)


def _joined(_: Any) -> _Stage:
    def shape(*given: Shape) -> Shape:
        rows, _ = _stretched(*given)
        return rows, sum(cols for _, cols in given)

    return _Stage("Joined", (), shape, _none)


def _placed(step: Any) -> _Stage:
    sizes = step.rows, step.cols
    return _Stage("Placed", sizes, lambda _: (Const(sizes[0]), Const(sizes[1])), _none)


def _reducing(step: Any, name: str, each: int, more: int) -> _Stage:
    """Return a stage with ``each`` operations per number and ``more`` per result."""
    if step.grid is None:
        return _Stage(name, (), lambda x: (x[0], Const(1)), lambda x: x[0] * (x[1] * each + more))
    left = [1 if axis in step.axes else size for axis, size in enumerate(step.grid)]
    work = math.prod(step.grid) * each + math.prod(left) * more
    rows, cols = math.prod(left[:-1]), left[-1]
    return _Stage(
        name, (rows, cols, work), lambda _: (Const(rows), Const(cols)), lambda _: Const(work)
    )


def _reduced(step: Any) -> _Stage:
    return _reducing(step, step.name, 1, int(step.name == "mean"))


def _variance(step: Any) -> _Stage:
    return _reducing(step, "Deviation" if step.root else "Variance", 4, 3 if step.root else 2)


def _softmax(step: Any) -> _Stage:
    more = 4 if step.logarithm else 0
    name = "LogSoftmax" if step.logarithm else "Softmax"
    return _Stage(name, (), lambda x: x, lambda x: x[0] * ((x[1] << 3) + more))


def _norm(name: str, each: int, more: int) -> Callable[[Any], _Stage]:
    """Return a norm: ``each`` + further operands operations per number, ``more`` per row."""

    def operations(x: Shape, *others: Shape) -> Any:
        return x[0] * (x[1] * (each + len(others)) + more)

    return lambda _: _Stage(name, (), lambda x, *_: x, operations)


def _top_places(step: Any) -> _Stage:
    return _Stage(
        "TopPlaces", (step.k,), lambda x: (x[0], Const(step.k)), lambda x: _elements(x) * step.k
    )


def _taken_along(_: Any) -> _Stage:
    return _Stage(
        "TakenAlong", (), lambda x, places: (x[0], places[1]), lambda _, places: _elements(places)
    )


_STAGES: Final[dict[type[steps.Step], Callable[[Any], _Stage]]] = {
    steps.ComplexProduct: _complex_product,
    steps.Pointwise: _pointwise,
    steps.Cut: _cut,
    steps.Columns: _columns,
    steps.Joined: _joined,
    steps.Placed: _placed,
    row_functions.Reduced: _reduced,
    row_functions.Variance: _variance,
    row_functions.Softmax: _softmax,
    row_functions.RMSNorm: _norm("RMSNorm", 3, 4),
    row_functions.LayerNorm: _norm("LayerNorm", 5, 5),
    choosing.TopPlaces: _top_places,
    choosing.TakenAlong: _taken_along,
}


def refusal(found: Chain) -> str | None:
    """Return the name of the first step without a stage; None if all have one."""
    return next((step.called for step in found.steps if type(step) not in _STAGES), None)


def chain(found: Chain) -> tuple[str, Function]:
    """Return the name of a chain's pipeline, and its function.

    The name joins the names of the first four steps and a checksum of all that the hardware needs.
    """
    stages = [_STAGES[type(step)](step) for step in found.steps]
    reads = [step.arrays for step in found.steps]
    described = repr(
        (found.count, [(each[:2], of) for each, of in zip(stages, reads, strict=True)])
    )
    checksum = hashlib.sha256(described.encode()).hexdigest()[:12]
    name = "_".join(["Chain", *(each.name for each in stages[:4]), checksum])

    def sizes(*tiles: Any) -> Sizes:
        rows, cols = _shapes(stages, reads, tiles)[0][-1]
        return rows, cols, _valid_rows(rows, tiles), cols

    def operations(*tiles: Any) -> Any:
        return sum(_shapes(stages, reads, tiles)[1])

    return name, Function(found.count, sizes, operations)


def _shapes(
    stages: Sequence[_Stage], reads: Sequence[tuple[int, ...]], tiles: Sequence[Any]
) -> tuple[list[Shape], list[Any]]:
    """Return the shapes of operands and stages, and the operations of each stage."""
    found: list[Shape] = [(each.rows, each.cols) for each in tiles]
    work = []
    for stage, arrays in zip(stages, reads, strict=True):
        given = [found[index] for index in arrays]
        found.append(stage.shape(*given))
        work.append(stage.operations(*given))
    return found, work


def _valid_rows(rows: Any, tiles: Sequence[Any]) -> Any:
    """Return the most valid rows of operands with ``rows`` rows; ``rows`` without such operands."""
    most, is_any = Const(0), Const(0, 1)
    for each in tiles:
        fits = each.rows == rows
        most = largest(most, Mux(fits, each.valid_rows, 0))
        is_any = is_any | fits
    return Mux(is_any, most, rows)

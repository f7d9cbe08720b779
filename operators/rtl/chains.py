"""Chains of steps as hardware: one pipeline per chain.

Steps compute their shapes and operations from Amaranth values as they do from numbers. Only sizes
that are broadcast need logic of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

# Any: amaranth has no types, and a step may be of any class.
from typing import Any, Final, TypeAlias

from amaranth import Const, Mux

from operators.functions import choosing, row_functions, steps
from operators.functions.steps import Chain
from operators.rtl.blocks import largest
from operators.rtl.description import Function, Sizes

Shape: TypeAlias = tuple[Any, Any]
"""Rows and columns."""


def _of_grid(step: Any) -> tuple[Any, ...]:
    """Return the constant size and work of a reduction along some dimensions of a tile."""
    anything = (0, 0)
    return () if step.grid is None else (*step.shape(anything), step.flops(anything))


_NUMBERS: Final[dict[type[steps.Step], Callable[[Any], tuple[Any, ...]]]] = {
    steps.ComplexProduct: lambda _: (),
    steps.Pointwise: lambda _: (),
    steps.Cut: lambda step: (step.count,),
    steps.Columns: lambda step: (len(step.places),),
    steps.Joined: lambda _: (),
    steps.Placed: lambda step: (step.rows, step.cols),
    row_functions.Reduced: _of_grid,
    row_functions.Variance: lambda step: (step.root, *_of_grid(step)),
    row_functions.Softmax: lambda step: (step.logarithm,),
    row_functions.RMSNorm: lambda _: (),
    row_functions.LayerNorm: lambda _: (),
    choosing.TopPlaces: lambda step: (step.k,),
    choosing.TakenAlong: lambda _: (),
}
"""The steps with hardware, and the numbers that the hardware of a step depends on."""


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


def refusal(found: Chain) -> str | None:
    """Return the name of the first step without a stage; None if all have one."""
    return next((step.called for step in found.steps if type(step) not in _NUMBERS), None)


def chain(found: Chain) -> tuple[str, Function]:
    """Return the name of a chain's pipeline, and its function.

    The name joins the names of the first four steps and a checksum of all that the hardware needs.
    """
    needed = [(step.called, _NUMBERS[type(step)](step), step.arrays) for step in found.steps]
    checksum = hashlib.sha256(repr((found.count, needed)).encode()).hexdigest()[:12]
    name = "_".join(["Chain", *(step.called for step in found.steps[:4]), checksum])

    def sizes(*tiles: Any) -> Sizes:
        rows, cols = _shapes(found, tiles)[0][-1]
        return rows, cols, _valid_rows(rows, tiles), cols

    def operations(*tiles: Any) -> Any:
        return sum(_shapes(found, tiles)[1])

    return name, Function(found.count, sizes, operations)


def _shapes(chain: Chain, tiles: Sequence[Any]) -> tuple[list[Shape], list[Any]]:
    """Return the shapes of operands and results, and the operations of each step."""
    found: list[Shape] = [(each.rows, each.cols) for each in tiles]
    work = []
    for step in chain.steps:
        given = [found[index] for index in step.arrays]
        if isinstance(step, steps.Joined):
            rows, _ = _stretched(*given)
            found.append((rows, sum(cols for _, cols in given)))
            continue
        if isinstance(step, steps.Pointwise | steps.ComplexProduct):
            given = [_stretched(*given)]
        found.append(step.shape(*given))
        work.append(step.flops(*given))
    return found, work


def _valid_rows(rows: Any, tiles: Sequence[Any]) -> Any:
    """Return the most valid rows of operands with ``rows`` rows; ``rows`` without such operands."""
    most, is_any = Const(0), Const(0, 1)
    for each in tiles:
        fits = each.rows == rows
        most = largest(most, Mux(fits, each.valid_rows, 0))
        is_any = is_any | fits
    return Mux(is_any, most, rows)

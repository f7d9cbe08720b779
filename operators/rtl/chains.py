"""Chains of steps as hardware: one pipeline per chain.

Steps compute their shapes and operations from Amaranth values as they do from numbers. Only
broadcast sizes need separate logic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import reduce

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
"""The steps with hardware. Each has a function that returns the numbers its hardware depends on."""


def _stretched(*shapes: Shape) -> Shape:
    """Return the broadcast shape of arrays."""
    rows, cols = (
        reduce(lambda size, other: Mux(size == 1, other, size), sizes)
        for sizes in zip(*shapes, strict=True)
    )
    return rows, cols


def refusal(chain: Chain) -> str | None:
    """Return the name of the first step without hardware; None if all steps have hardware."""
    return next((step.called for step in chain.steps if type(step) not in _NUMBERS), None)


def chain_function(chain: Chain) -> tuple[str, Function]:
    """Return the name of a chain's pipeline, and its function.

    The name has the first four steps and a checksum of the numbers that the hardware depends on.
    """
    numbers = [(step.called, _NUMBERS[type(step)](step), step.arrays) for step in chain.steps]
    checksum = hashlib.sha256(repr((chain.count, numbers)).encode()).hexdigest()[:12]
    name = "_".join(["Chain", *(step.called for step in chain.steps[:4]), checksum])

    def sizes(*tiles: Any) -> Sizes:
        rows, cols = _shapes(chain, tiles)[0][-1]
        return rows, cols, _valid_rows(rows, tiles), cols

    def operations(*tiles: Any) -> Any:
        return sum(_shapes(chain, tiles)[1])

    return name, Function(chain.count, sizes, operations)


def _shapes(chain: Chain, tiles: Sequence[Any]) -> tuple[list[Shape], list[Any]]:
    """Return the shapes of operands and results, and the operations of each step."""
    shapes: list[Shape] = [(tile.rows, tile.cols) for tile in tiles]
    work = []
    for step in chain.steps:
        operands = [shapes[index] for index in step.arrays]
        if isinstance(step, steps.Joined):
            rows, _ = _stretched(*operands)
            shapes.append((rows, sum(cols for _, cols in operands)))
            continue
        if isinstance(step, steps.Pointwise | steps.ComplexProduct):
            operands = [_stretched(*operands)]
        shapes.append(step.shape(*operands))
        work.append(step.flops(*operands))
    return shapes, work


def _valid_rows(rows: Any, tiles: Sequence[Any]) -> Any:
    """Return the most valid rows of operands with ``rows`` rows; ``rows`` without such operands."""
    most, is_any = Const(0), Const(0, 1)
    for tile in tiles:
        fits = tile.rows == rows
        most = largest(most, Mux(fits, tile.valid_rows, 0))
        is_any = is_any | fits
    return Mux(is_any, most, rows)

"""Chains of calls on the same tiles become one: what only they read need not be handed on."""

from __future__ import annotations

from operators.functions.steps import Chain, Step, renumbered
from operators.kernels.kernel import Operand
from operators.kernels.model import Model
from operators.kernels.row_local import RowLocal, same_operand
from operators.kernels.tensors import Computed, Source

__all__ = ["merge_chains"]


def merge_chains(model: Model) -> None:
    """Merge each kernel of steps into the only one that reads it, where that has the same tiles.

    So a norm spelled as powers, means and products is one unit, and so are the halves of a rotary
    embedding: what all readers of a tensor come down to reads it as often as it is needed.
    """
    for kernel in reversed(list(model.kernels)):
        if isinstance(kernel, RowLocal) and kernel in model.kernels:
            _take_in(model, kernel)


def _take_in(model: Model, kernel: RowLocal) -> None:
    """Merge into ``kernel`` what only it reads, and what only that reads, and so on."""
    while (found := _only_read_by(model, kernel)) is not None:
        merged = _merged(found, kernel)
        model.kernels[model.kernels.index(kernel)] = merged
        model.kernels.remove(found)
        kernel = merged


def _only_read_by(model: Model, kernel: RowLocal) -> RowLocal | None:
    """Return a kernel whose result only ``kernel`` reads, tile by tile; the last of several."""
    for other in reversed(model.kernels[: model.kernels.index(kernel)]):
        if not isinstance(other, RowLocal):
            continue
        (result,) = other.results
        reading = [each for each in kernel.operands if each.view.source is result]
        if reading and len(reading) == _readers(model, result) and all(map(_as_it_comes, reading)):
            return other
    return None


def _readers(model: Model, source: Source) -> int:
    return model.readers().get(source, 0)


def _as_it_comes(operand: Operand) -> bool:
    """Whether tiles are read in the order in which they are given, each once."""
    source, layout = operand.view.source, operand.layout
    assert isinstance(source, Computed)
    assert layout is not None
    pulled = operand.view.pull(layout)
    return (
        pulled is not None
        and pulled.layout.shape == source.shape
        and pulled.layout.same_order(source.layout)
    )


def _merged(first: RowLocal, second: RowLocal) -> RowLocal:
    """Return one kernel that does the steps of both."""
    (given,) = first.results
    operands: list[Operand] = []
    # The reader's operands come first: they say how what is merged is walked.
    for operand in (*second.operands, *first.operands):
        if operand.view.source is not given and _place(operand, operands) is None:
            operands.append(operand)
    steps: list[Step] = []

    def put(step: Step) -> int:
        steps.append(step)
        return len(operands) + len(steps) - 1

    handed_on = -1
    for kernel in (first, second):
        numbers: list[int] = []
        for operand in kernel.operands:
            place = _place(operand, operands)
            numbers.append(handed_on if place is None else place)
        for step in kernel.chain.steps:
            numbers.append(put(renumbered(step, numbers)))
        handed_on = numbers[-1]
    (result,) = second.results
    assert isinstance(result, Computed)
    return RowLocal(second.name, Chain(len(operands), tuple(steps)), operands, result)


def _place(operand: Operand, operands: list[Operand]) -> int | None:
    """Return which of ``operands`` is the same; None where none is."""
    same = (place for place, other in enumerate(operands) if same_operand(operand, other))
    return next(same, None)

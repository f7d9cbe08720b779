"""From the state of a run to its outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fabric.runs.outputs import Outputs, OutputShape
from fabric.symbolic.substitution import Sizes, Substitution
from fabric.values.block_scaled import block_format, numbers_of
from fabric.values.dims import Dim, Symbol, free_symbols, is_polynomial_in, is_ragged
from fabric.wiring.elaborate import Plan
from fabric.wiring.mistakes import off_chip_tensor_of
from fabric.wiring.off_chip_tensor import OffChipTensor

__all__ = ["stored_arrays", "stored_shapes"]


def stored_arrays(plan: Plan, stored: Mapping[str, object]) -> Outputs:
    """Return what the stores of ``plan`` wrote."""
    known = [name for name in _tensors(plan) if name in stored]
    others = sorted(stored.keys() - set(known))
    return Outputs({name: _array(stored[name]) for name in (*known, *others)})


def stored_shapes(plan: Plan, sizes: Sizes, guessed: frozenset[Symbol]) -> Outputs:
    """Return the shapes of what the stores of ``plan`` would have written.

    Args:
        plan: the program.
        sizes: that the run had.
        guessed: symbols of which only a product with others is known.
    """
    at = Substitution(sizes)
    return Outputs(
        {
            name: OutputShape(tuple(_size(dim, at, guessed) for dim in tensor.shape), tensor.dtype)
            for name, tensor in _tensors(plan).items()
        }
    )


def _tensors(plan: Plan) -> dict[str, OffChipTensor]:
    """Return what stores say of their outputs, in node order."""
    said = (off_chip_tensor_of(node) for node in plan.nodes if node.operator.off_chip == "write")
    return {each.output: each for each in said if each is not None and each.output is not None}


def _size(dim: Dim, at: Substitution, guessed: frozenset[Symbol]) -> int | None:
    """Return a size that the run had; the size of a ragged symbol is a mean, which may not do."""
    symbols = free_symbols(dim)
    ragged = frozenset(filter(is_ragged, symbols))
    if symbols & guessed or len(ragged) > 1 or not is_polynomial_in(dim, ragged):
        return None
    size = at.dim(dim)
    return int(size) if not free_symbols(size) and size == int(size) else None


def _array(stored: object) -> np.ndarray:
    """Return what a user's store may have written as an array; numpy makes none of uneven rows.

    Of a block-scaled type it has the numbers.
    """
    try:
        array = np.asarray(stored)
    except ValueError:
        alone = np.empty((), object)
        alone[()] = stored
        return alone
    return array if block_format(array.dtype) is None else numbers_of(array)

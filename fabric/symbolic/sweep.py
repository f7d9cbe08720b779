"""A program's metrics for thousands of sizes at once, such as those of many routings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabric.symbolic.metrics import Metrics
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted
from fabric.values.dims import Dim, free_symbols
from fabric.values.expression import AtLeastOne, CeilDiv, Expression, Product, Sum, Symbol

__all__ = ["Sweep"]

Numbers: TypeAlias = NDArray[np.int64]
Computed: TypeAlias = np.ndarray | float

_TOTALS: Final = (
    "load_bytes",
    "store_bytes",
    "traffic_bytes",
    "on_chip_bytes",
    "fifo_bytes",
    "memory_cycles",
)


class Sweep:
    """The totals of ``metrics`` as functions of arrays of sizes.

    Expressions are computed node by node, each node once, on whole arrays: for a Qwen layer that
    takes a tenth of a second for 10,000 settings, and generating code for it would take seconds.

    Attributes:
        symbols: names of the symbols they depend on.
    """

    def __init__(self, metrics: Metrics) -> None:
        """Take the totals of ``metrics``, in which symbols remain."""
        self._dims: Final[dict[str, Dim]] = {
            f"{name}.{field}": getattr(totals, field)
            for name, totals in metrics.accountings.items()
            for field in _TOTALS
        } | {"flops": metrics.flops}
        self._cycles: Final = metrics.compute_cycles
        free: set[Symbol] = set()
        for dim in (*self._dims.values(), *self._cycles):
            free |= free_symbols(dim)
        self._free: Final = sorted(free, key=str)
        self.symbols: Final = tuple(symbol.name for symbol in self._free)

    def __call__(self, sizes: Mapping[str, ArrayLike]) -> dict[str, Numbers]:
        """Return the totals for each of many settings.

        Args:
            sizes: by the name of the symbol, integers [settings].

        Returns:
            By name, such as ``paper.traffic_bytes``, integers [settings]; ``compute_cycles`` is
            what the busiest unit takes. Values have to be below 2**63.

        Raises:
            ConfigurationError: a symbol has no sizes.
        """
        missing = [name for name in self.symbols if name not in sizes]
        if missing:
            raise ConfigurationError(
                f"the sweep has no sizes for {', '.join(missing[:8])}: expected an array for each "
                f"of {counted(len(self.symbols), 'symbol')}"
            )
        known: dict[Dim, Computed] = {
            symbol: np.asarray(sizes[symbol.name], np.int64) for symbol in self._free
        }
        shape = np.broadcast_shapes(*(np.shape(array) for array in known.values()))
        totals = {name: _numbers(known, dim) for name, dim in self._dims.items()}
        busiest = np.zeros(shape, np.int64)
        for dim in self._cycles:
            np.maximum(busiest, _numbers(known, dim), out=busiest)
        totals["compute_cycles"] = busiest
        return {name: np.broadcast_to(total, shape) for name, total in totals.items()}


def _numbers(known: dict[Dim, Computed], dim: Dim) -> Numbers:
    value = np.asarray(_value(known, dim))
    return value if value.dtype.kind == "i" else np.ceil(value).astype(np.int64)


def _value(known: dict[Dim, Computed], dim: Dim) -> Computed:
    """Return what ``dim`` is for the arrays ``known``, which grows by what was computed."""
    if isinstance(dim, int):
        return dim
    if dim not in known:
        known[dim] = _computed(known, dim)
    return known[dim]


def _computed(known: dict[Dim, Computed], dim: Expression) -> Computed:
    if isinstance(dim, Sum):
        terms = (_value(known, rest) * _float(each) for rest, each in dim.terms.items())
        return sum(terms, _float(dim.number))
    if isinstance(dim, Product):
        powers = (_power(_value(known, base), each) for base, each in dim.powers.items())
        return math.prod(powers, start=_float(dim.coefficient))
    if isinstance(dim, CeilDiv):
        return -(-_value(known, dim.dim) // dim.divisor)
    assert isinstance(dim, AtLeastOne), dim
    return np.minimum(_value(known, dim.dim), 1)


def _power(base: Computed, exponent: int) -> Computed:
    return base**exponent if exponent >= 0 else 1 / base**-exponent


def _float(number: int | Fraction) -> float:
    """Return a fraction as the arrays have it."""
    return number if isinstance(number, int) else number.numerator / number.denominator

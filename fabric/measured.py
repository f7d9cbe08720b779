"""Costs with the sizes a run had: symbols are bound by counting what the channels carried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fabric.costs import Costs
from fabric.dims import Dim
from fabric.stream_type import BufferType, StreamType, TileType, TupleType, ValueType

if TYPE_CHECKING:
    from fabric.machine import Machine

__all__ = ["measured_costs"]

Sizes = dict[Any, Fraction]


def measured_costs(machine: Machine) -> Costs:
    """Return the program's costs, summed, for the sizes its streams had in this run."""
    sizes = _Sizes(machine)
    total = dict.fromkeys((field.name for field in fields(Costs)), 0)
    for node in machine.plan.nodes:
        costs = node.operator.costs(
            tuple(map(sizes.stream, node.input_types)), tuple(map(sizes.stream, node.output_types))
        )
        for name in total:
            total[name] += getattr(costs, name)
    return Costs(**{name: math.ceil(value) for name, value in total.items()})


class _Sizes:
    """Values of symbols, found by dividing what a channel carried by what is known of its shape."""

    def __init__(self, machine: Machine) -> None:
        self._values: Sizes = {}
        self._cache: dict[Any, Any] = {}
        for edge, channel in zip(machine.plan.edges, machine.channels, strict=True):
            self._bind(edge.producer.outputs[edge.output].type.shape, channel.elements)

    def _bind(self, shape: tuple[Dim, ...], elements: int) -> None:
        unknown = [dim for dim in shape if not isinstance(dim, int) and not self._is_known(dim)]
        if not unknown:
            return
        *others, last = unknown
        if others or len(last.free_symbols) != 1:
            if elements:
                return
            for symbol in {symbol for dim in unknown for symbol in dim.free_symbols}:
                self._values.setdefault(symbol, Fraction(0))
            return
        known = math.prod(self.dim(dim) for dim in shape if dim is not last)
        value = Fraction(elements) / known if known else Fraction(0)
        if last.is_Symbol:
            self._values[last] = value
        elif not elements:
            self._values.setdefault(next(iter(last.free_symbols)), Fraction(0))

    def _is_known(self, dim: Any) -> bool:
        return all(symbol in self._values for symbol in dim.free_symbols)

    def dim(self, dim: Dim) -> Any:
        """Return the value ``dim`` had; 0 for a symbol that no channel shows."""
        if isinstance(dim, int):
            return dim
        if dim not in self._cache:
            import sympy

            bound: Mapping[Any, Any] = {
                symbol: sympy.Rational(*self._values.get(symbol, Fraction(0)).as_integer_ratio())
                for symbol in dim.free_symbols
            }
            value = dim.xreplace(bound)
            self._cache[dim] = Fraction(int(value.p), int(value.q))
        return self._cache[dim]

    def stream(self, stream: StreamType) -> StreamType:
        """Return ``stream`` with numbers for symbols."""
        return StreamType(tuple(map(self.dim, stream.shape)), self._value(stream.value))

    def _value(self, value: ValueType) -> ValueType:
        if isinstance(value, TileType):
            if isinstance(value.rows, int) and isinstance(value.cols, int):
                return value
            return replace(value, rows=self.dim(value.rows), cols=self.dim(value.cols))
        if isinstance(value, BufferType):
            tile = self._value(value.tile)
            assert isinstance(tile, TileType)
            return BufferType(tuple(map(self.dim, value.shape)), tile)
        if isinstance(value, TupleType):
            return TupleType(tuple(map(self._value, value.items)))
        return value

"""Sizes for symbols, and types of streams with sizes substituted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from fabric.graph.values.dims import Dim, free_symbols, is_ragged
from fabric.graph.values.expression import Expression, Symbol
from fabric.graph.values.stream_type import (
    BufferType,
    StreamType,
    TileType,
    TupleType,
    ValueType,
    with_dims,
)
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import one_of

Size: TypeAlias = int | Fraction
"""A number of elements; for a ragged symbol the mean over its groups."""

Sizes: TypeAlias = Mapping[Symbol, Size]


def known_sizes(program: Program) -> dict[Symbol, Size]:
    """Return the sizes that the program binds, and the sizes of its lists."""
    return {**program.listed_sizes, **program.sizes}


def symbols_of(plan: Plan) -> dict[str, Symbol]:
    """Return the symbols in the types of the program's streams by name, in wiring order."""
    symbols: dict[str, Symbol] = {}
    for node in plan.nodes:
        for stream in (*node.outputs, *node.inputs):
            for dim in (*stream.shape, *dims_of(stream.value)):
                if not isinstance(dim, int):
                    for symbol in sorted(free_symbols(dim), key=str):
                        symbols.setdefault(symbol.name, symbol)
    return symbols


def chosen_sizes(plan: Plan, given: Mapping[str, Size], *, data: bool) -> dict[Symbol, Size]:
    """Return sizes by symbol.

    ``given``: sizes by name, the mean over its groups for a ragged symbol; they override the
    program's. ``data``: also use the sizes of the program's control data.
    """
    symbols = symbols_of(plan) if given or data else {}
    sizes: dict[Symbol, Size] = known_sizes(plan.program) if data else {}
    for name, size in given.items():
        if name not in symbols:
            expected = one_of(_few(list(symbols), name), name) if symbols else "no --set"
            raise ConfigurationError(
                f"--set {name}={size}: no stream has such a symbol: expected {expected}"
            )
        if not isinstance(size, int) and not is_ragged(symbols[name]):
            raise ConfigurationError(
                f"--set {name}={size}: the dimension has one size: expected an integer"
            )
        sizes[symbols[name]] = size
    return followed(sizes, plan.program)


def _few(names: Sequence[str], found: str) -> list[str]:
    array = found.partition("[")[0]
    near = [name for name in names if name.partition("[")[0] == array] or list(names)
    return [*near[:8], "..."] if len(near) > 8 else near


def dims_of(value: ValueType) -> list[Dim]:
    """Return the sizes in the type of an element."""
    if isinstance(value, TileType):
        return [value.rows, value.cols]
    if isinstance(value, BufferType):
        return [*value.shape, *dims_of(value.tile)]
    if isinstance(value, TupleType):
        return [dim for item in value.items for dim in dims_of(item)]
    return []


class Substitution:
    """Puts ``sizes`` in place of symbols; symbols without a size stay."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes: Final = sizes
        self._dims: dict[Dim, Dim] = {}
        self._streams: dict[int, tuple[StreamType, StreamType]] = {}
        self._values: dict[int, tuple[ValueType, ValueType]] = {}
        self._alike: dict[tuple[tuple[Dim, ...], int], StreamType] = {}
        self._alike_values: dict[ValueType, ValueType] = {}

    def dim(self, dim: Dim) -> Dim:
        """Return ``dim`` with sizes: a number if all its symbols have sizes."""
        if not isinstance(dim, Expression) or not self.sizes:
            return dim
        sized = self._dims.get(dim)
        if sized is None:
            sized = self._dims[dim] = dim.with_sizes(self.sizes)
        return sized

    def stream(self, stream: StreamType) -> StreamType:
        """Return ``stream`` with sizes; the same object for equal streams."""
        # By id: most calls repeat an object, and a hash would walk through all of its parts.
        entry = self._streams.get(id(stream))
        if entry is None:
            # Keep the object, so that its id is not reused.
            entry = self._streams[id(stream)] = stream, self._sized(stream)
        return entry[1]

    def _sized(self, stream: StreamType) -> StreamType:
        shape = tuple([dim if dim.__class__ is int else self.dim(dim) for dim in stream.shape])
        entry = self._values.get(id(stream.value))
        if entry is None:
            value = with_dims(stream.value, self.dim) if self.sizes else stream.value
            value = self._alike_values.setdefault(value, value)
            entry = self._values[id(stream.value)] = stream.value, value
        key = shape, id(entry[1])
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = StreamType(shape, entry[1])
        return alike


def followed(sizes: Sizes, program: Program) -> dict[Symbol, Size]:
    """Return ``sizes`` and the sizes that follow for absorbed and mixed symbols."""
    result = dict(sizes)
    # A symbol comes after the symbols in its expression.
    for symbol, dim in program.absorbed.items():
        if symbol not in result and free_symbols(dim) <= result.keys():
            result[symbol] = Substitution(result).dim(dim)
    for symbol, parts in program.mixtures.items():
        if symbol not in result and _known(parts, result):
            at = Substitution(result)
            count = sum(at.dim(count) for count, _ in parts)
            whole = sum(at.dim(count) * at.dim(size) for count, size in parts)
            mean = Fraction(whole, count) if count else Fraction(0)
            result[symbol] = int(mean) if mean.denominator == 1 else mean
    return result


def peaks(sizes: Sizes, program: Program) -> dict[Symbol, Size]:
    """Return the largest size of each symbol that mixes the elements of several streams."""
    at = Substitution(sizes)
    return {
        symbol: max(at.dim(size) if at.dim(count) else 0 for count, size in parts)
        for symbol, parts in program.mixtures.items()
        if _known(parts, sizes)
    }


def _known(parts: tuple[tuple[Dim, Dim], ...], sizes: Sizes) -> bool:
    return all(free_symbols(dim) <= sizes.keys() for part in parts for dim in part)

"""What the types of a program tell for certain: sizes, and how many elements streams have.

Sizes are those that the program binds (``Program.bind``); a run that finds another one warns of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fabric.symbolic.substitution import Size, Sizes, Substitution, followed
from fabric.values.dims import Dim, Expression, Symbol, free_symbols, is_ragged, is_total, parts_of
from fabric.values.expression import Product, Sum
from fabric.values.stream_type import BufferType, StreamType, TileType, TupleType, ValueType
from fabric.wiring.elaborate import Plan

__all__ = ["Certain", "Facts", "certain_sizes", "symbols_of"]


def certain_sizes(plan: Plan) -> dict[Symbol, Size]:
    """Return the sizes that the program binds and that a run can measure, and what follows.

    A run knows a symbol by the elements of a channel, where all other dimensions are known and not
    0; where only a product of two is seen, it guesses. What stands for a product of ragged symbols
    is left out: the mean of a product is not that of the means.
    """
    program = plan.program
    sizes: dict[Symbol, Size] = {}
    types = {id(edge.type): edge.type for edge in plan.edges}.values()
    waiting = {each.shape for each in types if not _is_static(each.shape)}
    while True:
        found = {
            symbol: program.sizes[symbol]
            for shape in waiting
            if (symbol := _shown(shape, sizes)) in program.sizes
        }
        if not found:
            break
        sizes |= found
        waiting = {shape for shape in waiting if not _all_known(shape, sizes)}
    result = followed(sizes, program)
    doubtful = {symbol for symbol, dim in program.absorbed.items() if _ragged_factors((dim,)) > 1}
    for symbol, dim in program.absorbed.items():
        if free_symbols(dim) & doubtful:
            doubtful.add(symbol)
    for symbol, parts in program.mixtures.items():
        if any(free_symbols(each) & doubtful for part in parts for each in part):
            doubtful.add(symbol)
    return {symbol: size for symbol, size in result.items() if symbol not in doubtful}


class Facts(NamedTuple):
    """What is certain of a stream.

    Attributes:
        type: with the sizes that are certain; symbols where they are not.
        elements: how many it has in all; None where that is not certain.
        is_regular: it has elements, and no group of them is empty.
        has_sizes: of its elements all sizes are certain.
    """

    type: StreamType
    elements: int | None
    is_regular: bool
    has_sizes: bool


class Certain:
    """Types of streams with the sizes that are certain.

    A mean over ragged groups counts the elements of a stream where it is the only one. Of a tile or
    a buffer it says nothing: they are routed one by one, and each has a size of its own. Symbols
    that stand for the sizes of those are left as they are.

    Attributes:
        substitution: of all sizes that are certain, means among them.
        totals: that the program binds and that a run can measure.
    """

    def __init__(self, plan: Plan, sizes: Sizes) -> None:
        """Put ``sizes`` into the types of ``plan``."""
        inner = {
            symbol
            for value in {stream.value for node in plan.nodes for stream in node.outputs}
            for symbol in symbols_of(value)
            if is_ragged(symbol)
        }
        for symbol, dim in plan.program.absorbed.items():
            if free_symbols(dim) & inner:
                inner.add(symbol)
        kept = {symbol: size for symbol, size in sizes.items() if symbol not in inner}
        numbers = {symbol: size for symbol, size in kept.items() if not is_ragged(symbol)}
        self._numbers: Final = Substitution(numbers)
        self._means: Final = Substitution(kept)
        self.substitution: Final = self._numbers if numbers == sizes else Substitution(sizes)
        self.totals: Final = self._certain_totals(plan)
        self._known: Final[dict[int, Facts]] = {}
        self._facts: Final[dict[tuple[bool, StreamType], Facts]] = {}
        self._seen: Final[list[StreamType]] = []

    def facts(self, of: StreamType) -> Facts:
        """Return what is certain of a stream of type ``of``; one object for streams alike."""
        known = self._known.get(id(of))
        if known is None:
            sized = self._numbers.stream(of)
            known = self._known.get(id(sized)) or self._facts_of(sized)
            self._known[id(of)] = self._known[id(sized)] = known
            # What was asked for is kept, so that its identity stays its own.
            self._seen.append(of)
        return known

    def _certain_totals(self, plan: Plan) -> dict[Expression, int]:
        """Return the totals of which each part is what some channel carries.

        One of two ragged sizes is left out: the mean of a product is not that of the means.
        """
        stated = plan.program.totals
        carried = {edge.type.count for edge in plan.edges} if stated else set()
        found: dict[Expression, int] = {}
        for total, size in stated.items():
            parts = parts_of(total)
            sized = self.substitution.dim(total)
            if (
                isinstance(sized, Expression)
                and is_total(sized)
                and carried.issuperset(parts)
                and all(_ragged_factors((part,)) <= 1 for part in parts)
            ):
                found[sized] = size
        return found

    def _facts_of(self, sized: StreamType) -> Facts:
        regular = all(isinstance(dim, int) and dim for dim in sized.shape)
        if not regular and _ragged_factors(sized.shape) == 1:
            sized = StreamType(tuple(map(self._means.dim, sized.shape)), sized.value)
        found = self._facts.get((regular, sized))
        if found is None:
            count = sized.count
            elements = count if isinstance(count, int) else None
            has_sizes = next(symbols_of(sized.value), None) is None
            found = self._facts[regular, sized] = Facts(sized, elements, regular, has_sizes)
        return found


def _shown(shape: tuple[Dim, ...], sizes: dict[Symbol, Size]) -> Symbol | None:
    """Return the symbol that the elements of a stream of ``shape`` show, where they show one."""
    unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
    if len(unknown) != 1 or not isinstance(unknown[0], Symbol):
        return None
    at = Substitution(sizes)
    return unknown[0] if all(at.dim(dim) for dim in shape if dim is not unknown[0]) else None


def _all_known(shape: tuple[Dim, ...], sizes: dict[Symbol, Size]) -> bool:
    return all(free_symbols(dim) <= sizes.keys() for dim in shape)


def _is_static(shape: tuple[Dim, ...]) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _ragged_factors(dims: Iterable[Dim]) -> int:
    """Return of how many ragged sizes the product of ``dims`` is one, at most."""
    return sum(map(_degree, dims))


def _degree(dim: Dim) -> int:
    if isinstance(dim, Sum):
        return max(map(_degree, dim.terms))
    if isinstance(dim, Product):
        return sum(_degree(base) * exponent for base, exponent in dim.powers.items())
    if isinstance(dim, Symbol) or not is_ragged(dim):
        return int(is_ragged(dim))
    return 2  # what is rounded has no mean that follows from another


def symbols_of(value: ValueType) -> Iterator[Symbol]:
    """Yield the symbols in the type of an element."""
    if isinstance(value, TileType):
        yield from free_symbols(value.rows)
        yield from free_symbols(value.cols)
    elif isinstance(value, BufferType):
        for dim in value.shape:
            yield from free_symbols(dim)
        yield from symbols_of(value.tile)
    elif isinstance(value, TupleType):
        for item in value.items:
            yield from symbols_of(item)

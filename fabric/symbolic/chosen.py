"""The sizes that a user chooses for symbols: from ``--set NAME=VALUE`` and from the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabric.symbolic.substitution import Size, followed
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of
from fabric.values.dims import Dim, Symbol, free_symbols
from fabric.values.stream_type import BufferType, TileType, TupleType, ValueType
from fabric.wiring.elaborate import Plan
from fabric.wiring.program import Program

__all__ = ["chosen_sizes", "known_sizes", "symbols_of"]


def known_sizes(program: Program) -> dict[Symbol, Size]:
    """Return the sizes that the program binds, and those that its lists decide."""
    return {**program.listed_sizes, **program.sizes}


def symbols_of(plan: Plan) -> dict[str, Symbol]:
    """Return the symbols in the types of the program's streams by name, in wiring order."""
    found: dict[str, Symbol] = {}
    for node in plan.nodes:
        for stream in (*node.outputs, *node.inputs):
            for dim in (*stream.shape, *_dims(stream.value)):
                if not isinstance(dim, int):
                    for symbol in sorted(free_symbols(dim), key=str):
                        found.setdefault(symbol.name, symbol)
    return found


def chosen_sizes(plan: Plan, given: Mapping[str, int], *, data: bool) -> dict[Symbol, Size]:
    """Return sizes by symbol.

    Args:
        plan: the program.
        given: by name; they count more than the program's.
        data: take the sizes that the program's control data decide, too.

    Raises:
        ConfigurationError: no stream has a symbol of a given name.
    """
    known = symbols_of(plan) if given or data else {}
    sizes: dict[Symbol, Size] = known_sizes(plan.program) if data else {}
    for name, size in given.items():
        if name not in known:
            expected = one_of(_few(list(known), name), name) if known else "none, all is static"
            raise ConfigurationError(
                f"--set {name}={size}: no stream has such a symbol: expected {expected}"
            )
        sizes[known[name]] = size
    return followed(sizes, plan.program)


def _few(names: Sequence[str], found: str) -> list[str]:
    """Return names to choose from: those that begin like ``found``, and not hundreds."""
    near = [
        name for name in names if name.split("[")[0] == found.split("[", maxsplit=1)[0]
    ] or list(names)
    return [*near[:8], "..."] if len(near) > 8 else near


def _dims(value: ValueType) -> list[Dim]:
    if isinstance(value, TileType):
        return [value.rows, value.cols]
    if isinstance(value, BufferType):
        return [*value.shape, *_dims(value.tile)]
    if isinstance(value, TupleType):
        return [dim for item in value.items for dim in _dims(item)]
    return []

"""Tables of integers with named columns, which Python, numpy and compiled loops read and write.

A loop takes a world, which is a ``NamedTuple`` of tables, and integers::

    class Channel(Row):
        depth: int
        sent: int

    class World(NamedTuple):
        channels: Table[Channel]
        ready: Counters
        clock: Clock  # a row by itself

    @MachineCode
    def advance(w: World, count: int) -> tuple[int]:
        channel = w.channels[w.ready[count]]
        channel.sent += 1
        return (channel.sent,)

    world = World(Table.zeros(Channel, 3), np.zeros(3, np.int64), Table.zeros(Clock, 1)[0])
    world.channels.rows["depth"] = 2
    loop = advance.over(world)
    loop(0)

Helpers take the world, rows and integers. A world may contain other worlds. In Python a row is a
view into its table, so ``advance.function(world, 0)`` does the same without a compiler.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping
from functools import cache

# Any: a world is any named tuple.
from typing import (
    Any,
    Final,
    Generic,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

Counters: TypeAlias = NDArray[np.int64]
"""Contiguous integers [size]."""


class Row:
    """A row of a table. The annotations of a subclass, ``int`` each, name its columns."""

    def __init__(self, cells: memoryview, first: int) -> None:
        self._cells = cells
        self._first = first

    def __deepcopy__(self, _: object) -> Row:
        return type(self)(next(cells_of(self)).copy().data, 0)

    def __init_subclass__(cls) -> None:
        for place, name in enumerate(cls.__annotations__):
            setattr(cls, name, _column(place))


def _column(place: int) -> property:
    def read(row: Row) -> int:
        return row._cells[row._first + place]

    def write(row: Row, value: int) -> None:
        row._cells[row._first + place] = value

    return property(read, write)


R = TypeVar("R", bound=Row)


class Table(Generic[R]):
    """Rows of integers, of the class ``row``.

    Attributes:
        cells: the integers, row after row.
        memory: the cells as a memoryview, which Python reads faster.
        rows: the cells as a numpy array with named columns: ``table.rows["sent"]``.
        size: number of rows.
    """

    def __init__(self, row: type[R], cells: Counters) -> None:
        assert cells.flags.c_contiguous, row
        self.row: Final = row
        self.cells: Final = cells.reshape(-1)
        self.memory = self.cells.data
        columns = np.dtype([(name, np.int64) for name in row.__annotations__])
        self.rows: Final[NDArray[Any]] = self.cells.view(columns)
        self.size: Final = len(self.rows)
        self._width: Final = len(row.__annotations__)
        self._cached: Final[dict[int, R]] = {}

    @classmethod
    def zeros(cls, row: type[R], size: int) -> Table[R]:
        """Return a table of ``size`` rows."""
        return cls(row, np.zeros(size * len(row.__annotations__), np.int64))

    def __getitem__(self, index: int) -> R:
        row = self._cached.get(index)
        if row is None:
            row = self._cached[index] = self.row(self.memory, index * self._width)
        return row

    def __deepcopy__(self, _: object) -> Table[R]:
        """Return a copy of the cells, without the cached row objects."""
        return Table(self.row, self.cells.copy())

    def copies(self) -> Iterator[R]:
        """Yield read-only copies of all rows, faster than indexing them one by one."""
        copy = namedtuple("copy", self.row.__annotations__)  # type: ignore[misc]  # noqa: PYI024
        return map(cast("Any", copy)._make, self.rows.tolist())


@cache
def parts(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field of a world; empty if ``kind`` is not a world."""
    return get_type_hints(kind) if hasattr(kind, "_fields") else {}


def width(kind: Any) -> int:
    """Return how many integers ``kind`` takes in a frame: an address and a size for each array."""
    return sum(map(width, parts(kind).values())) if parts(kind) else 2


def row_of(kind: Any) -> type[Row] | None:
    """Return the row class of a table, or ``kind`` if it is a row class; None otherwise."""
    row = get_args(kind)[0] if get_origin(kind) is Table else kind
    return row if isinstance(row, type) and issubclass(row, Row) else None


def cells_of(tables: Any) -> Iterator[Counters]:
    """Yield the integers of each table, array or row, in the order of the fields of worlds."""
    if isinstance(tables, tuple):
        for field in tables:
            yield from cells_of(field)
    elif isinstance(tables, Row):
        end = tables._first + len(tables.__annotations__)
        yield np.asarray(tables._cells)[tables._first : end]
    else:
        yield tables.cells if isinstance(tables, Table) else tables

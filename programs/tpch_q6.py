"""TPC-H query 6: the revenue of discounted items of one year, from all rows or from some pieces.

Rows are in the order of shipping, with dates up to ``late`` days off. ``scan`` reads four columns
of every row. ``sparse`` reads all dates. A Partition selects the pieces that have a row of the
year, and only their four columns are read. Numbers are integers (cents, hundredths, days), so that
the sum is exact. Columns are drawn as in the benchmark's specification (4.2.3). The price is the
quantity times 900 to 1,100 dollars.

Timing mode has no dates to compare. It takes the pieces of the year that ``build`` computes.

Run:      python -m fabric run programs/tpch_q6.py -p rows=2048 -p columns=scan
Computes: y = sum(price * discount) over the rows of 1994 with a discount of 5 to 7 percent and a
          quantity below 24
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError, Dim, Program, Selector, SelectorType, Tile, TileType
from fabric.extend import Bounds, number_in
from operators import (
    Accum,
    Consumer,
    Flatten,
    Function,
    LinearOffChipStore,
    Map,
    Metadata,
    Partition,
    Promote,
    RandomOffChipLoad,
    Sum,
    Tensor,
)
from operators.rtl import description

DAYS = 2526  # days of shipping, from 1992-01-02 to 1998-12-01
YEAR = (730, 1095)  # the first day of 1994, and the first day after it, from 1992-01-02

Column = NDArray[np.int32]


@dataclass(frozen=True)
class HasYear(Function):
    """Select stream 1 for a piece with a row of the year, otherwise stream 0.

    Attributes:
        given: for each piece, whether it has a row of the year, for timing mode.
    """

    mixed_types: ClassVar = True

    given: np.ndarray

    def infer(self, dates: TileType, number: TileType) -> SelectorType:
        return SelectorType(2, hits=1)

    def flops(self, dates: Tile, number: Tile) -> Dim:
        return 2 * dates.cols

    def apply(self, dates: Tile, number: Tile) -> Selector:
        has = self.given[number_in(number)] if dates.data is None else in_year(dates.data).any()
        return Selector((int(has),), 2)

    def hardware(self) -> description.Function:
        return description.Function(2, lambda *_: description.NUMBER, is_told=True)


@dataclass(frozen=True)
class Revenue(Function):
    """Compute the revenue of a piece, in eight operations per row."""

    operands: ClassVar = 4

    def infer(self, *columns: TileType) -> TileType:
        return TileType(1, 1, np.dtype(np.int64))

    def flops(self, *columns: Tile) -> Dim:
        return 8 * columns[0].cols

    def apply(self, *columns: Tile) -> Tile:
        numbers = [each.data for each in columns if each.data is not None]
        data = np.array([[revenue(*numbers)]]) if numbers else None
        return Tile(1, 1, np.dtype(np.int64), data)

    def hardware(self) -> description.Function:
        return description.Function(4, lambda *_: description.NUMBER)


def build(
    rows: Annotated[int, Bounds(1)] = 2048,
    piece: Annotated[int, Bounds(1)] = 64,
    columns: Literal["sparse", "scan"] = "sparse",
    late: Annotated[int, Bounds(0)] = 60,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire the query.

    Args:
        rows: rows of the table, a multiple of ``piece``.
        piece: rows that are read at a time.
        columns: ``scan`` reads all columns of all pieces, ``sparse`` only of pieces of the year.
        late: days by which a row may be out of order.
        seed: for the table.
    """
    if rows % piece:
        raise ConfigurationError(f"rows is {rows}: expected a multiple of {piece}")
    table = _table(rows, late, seed)
    count = rows // piece
    has = np.asarray(in_year(table[0]).reshape(count, piece).any(axis=1))
    if not has.any():
        raise ConfigurationError(f"rows is {rows}: expected rows of the year among them")

    with Program("tpch-q6", mode="functional", channel_depth=8) as program:
        numbers = Flatten(0, 1)(Metadata(np.arange(count))())  # [T]
        if columns == "sparse":
            dates = _load(table[0], piece)(numbers)  # [T] of 1 x piece
            others, numbers = Partition(2)(numbers, Map(HasYear(has))(dates, numbers))
            Consumer()(others)
        read = [_load(column, piece)(numbers) for column in table]  # 4 of [D] of 1 x piece
        sums = Map(Revenue())(*read)  # [D] of 1x1
        LinearOffChipStore("y")(Promote(0)(Accum(Sum())(Promote()(sums))))
    program.expect(y=lambda: np.array([[revenue(*table)]]))
    return program


def in_year(dates: Column) -> NDArray[np.bool_]:
    return (dates >= YEAR[0]) & (dates < YEAR[1])


def revenue(dates: Column, discount: Column, quantity: Column, price: Column) -> np.int64:
    """Return the sum of price times discount where all conditions hold."""
    counts = in_year(dates) & (discount >= 5) & (discount <= 7) & (quantity < 24)
    return np.int64((price.astype(np.int64) * discount * counts).sum())


def _table(rows: int, late: int, seed: int) -> tuple[Column, ...]:
    random = np.random.default_rng(seed)
    dates = np.linspace(0, DAYS, rows, endpoint=False) + random.integers(-late, late + 1, rows)
    quantity = random.integers(1, 51, rows)
    price = quantity * random.integers(90_000, 110_000, rows)
    columns = np.clip(dates, 0, DAYS - 1), random.integers(0, 11, rows), quantity, price
    return tuple(column.astype(np.int32) for column in columns)


def _load(column: Column, piece: int) -> RandomOffChipLoad:
    return RandomOffChipLoad(
        Tensor((1, len(column)), column[np.newaxis], dtype="int32"), (1, piece)
    )

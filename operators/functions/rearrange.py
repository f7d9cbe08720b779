"""Tiles with their numbers in other places: rows as columns, or rows of another length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from fabric import Bounds, Dim, ShapeError, Tile, TileType, same
from operators.functions.base import Function, Shaped

__all__ = ["Gather", "ReshapeTile", "Transpose"]


@dataclass(frozen=True)
class Transpose(Function):
    """The tile with rows and columns exchanged; no operations.

    Shapes:
        x: R x C; result: C x R, with the valid columns of x as its valid rows.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(4, 4))()
        ...     LinearOffChipStore("y")(Map(Transpose())(tiles))
        >>> program.expect(y=lambda: x.T)
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        return TileType(x.cols, x.rows, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else x.data.T
        return Tile(x.cols, x.rows, x.dtype, data, valid_rows=x.valid_cols, valid_cols=x.valid_rows)


@dataclass(frozen=True)
class ReshapeTile(Function):
    """The numbers of a tile in row-major order, in rows of another length; no operations.

    Shapes:
        x: R x C, without padding; result: rows x cols, as many numbers.

    Attributes:
        rows: of the result.
        cols: of the result.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(4, 4))()
        ...     LinearOffChipStore("y")(Map(ReshapeTile(2, 8))(tiles))
        >>> program.expect(y=lambda: x.reshape(2, 8))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    rows: Annotated[int, Bounds(1)]
    cols: Annotated[int, Bounds(1)]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        if same(x.size_elements, self.rows * self.cols) is False:
            raise ShapeError(
                f"ReshapeTile makes {self.rows}x{self.cols} of {x}: expected as many elements"
            )
        return TileType(self.rows, self.cols, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else x.data.reshape(self.rows, self.cols)
        return Tile(self.rows, self.cols, x.dtype, data)


@dataclass(frozen=True)
class Gather(Function):
    """The numbers of a tile at other places, some of them repeated; no operations.

    Shapes:
        x: R x C, without padding; result: rows x cols.

    Attributes:
        rows: of the result.
        cols: of the result.
        places: which number of x, in row-major order, each number of the result is.

    Example:
        >>> x = np.arange(4.0).reshape(2, 2)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 2))()
        ...     LinearOffChipStore("y")(Map(Gather(1, 3, (3, 0, 0)))(tiles))
        >>> program.expect(y=lambda: np.array([[3.0, 0.0, 0.0]]))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    rows: Annotated[int, Bounds(1)]
    cols: Annotated[int, Bounds(1)]
    places: tuple[int, ...]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        if len(self.places) != self.rows * self.cols:
            raise ShapeError(
                f"Gather makes {self.rows}x{self.cols} of {len(self.places)} places: "
                "expected one for each element"
            )
        return TileType(self.rows, self.cols, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None
        if x.data is not None:
            data = x.data.reshape(-1)[list(self.places)].reshape(self.rows, self.cols)
        return Tile(self.rows, self.cols, x.dtype, data)

"""Streams while a program is wired: producers, shapes, element types and layouts.

Layouts are worked out on demand (``Operator.layouts``), since most programs do not use them.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final, NoReturn, Protocol

from typing_extensions import override

from fabric.graph.arguments.described import checked, refuse, settle
from fabric.graph.layouts.layout import Laid, Layout
from fabric.graph.values.dims import Claim, Dim, is_static, product, same
from fabric.graph.values.stream_type import (
    BufferType,
    StreamType,
    TileType,
    TupleType,
    ValueType,
    shape_text,
    without_ragged,
)
from fabric.graph.wiring.expectation import Expectation, Tolerance
from fabric.messages.telling.errors import ProgramError, ShapeError
from fabric.messages.telling.place import Place, calling_place
from fabric.messages.telling.sheet import in_short, shown
from fabric.messages.telling.wording import counted


class Producer(Protocol):
    """The operator in front of a stream, as far as a stream knows it."""

    @property
    def name(self) -> str:
        """Unique in the program."""
        ...

    @property
    def operator(self) -> object:
        """The description of the operator."""
        ...

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """The streams it reads."""
        ...

    @property
    def assumed(self) -> list[Assumed]:
        """Outputs with stated shapes."""
        ...

    @property
    def expected(self) -> dict[int, Expectation]:
        """How its outputs shall be where the program says so, by port."""
        ...

    @property
    def laid(self) -> tuple[Laid, ...]:
        """The layouts of its outputs."""
        ...

    @property
    def is_laid_out(self) -> bool:
        """Whether the program states the layout of a stream before it."""
        ...


class Stream:
    """The output of an operator, while you wire the program.

    Attributes:
        node: the operator that produces it.
        port: which of its outputs.
        type: shape and element type.
        shape: the dimensions, outermost first.
        rank: the number of dimensions minus one.
        value: the type of an element.
        is_laid_out: whether the program states a layout of this stream or of one in front of it.
    """

    def __init__(self, node: Producer | None, port: int, stream_type: StreamType) -> None:
        self.node = node
        self.port: Final = port
        self.type: Final = stream_type
        # Operators ask for these by the thousand while they are wired.
        self.shape: Final[tuple[Dim, ...]] = stream_type.shape
        self.rank: Final = len(self.shape) - 1
        self.value: Final[ValueType] = stream_type.value
        self.is_laid_out = node is not None and node.is_laid_out

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Dimensions that only the program knows."""
        return ()

    @property
    def name(self) -> str:
        """``partition_1.0``: the producer and its port."""
        return "feedback" if self.node is None else f"{self.node.name}.{self.port}"

    @property
    def laid(self) -> Laid:
        """Its layout, or why there is none."""
        if self.node is None:
            return Laid(None, "a feedback is used before its order is known")
        return self.node.laid[self.port]

    @property
    def layout(self) -> Layout | None:
        """Which coordinates of a tensor its tiles hold, and in which order; None if not known."""
        return self.laid.layout

    @property
    def no_layout(self) -> str | None:
        """Why there is no layout, in words; None where there is one."""
        found = self.laid
        return found.reason if found.layout is None else None

    def resolve(self) -> Stream:
        """The stream itself; for a feedback, what it was connected to."""
        return self

    def __iter__(self) -> NoReturn:
        """Refuse to be taken for several streams.

        Raises:
            ProgramError: always.
        """
        refuse(f"{self} is one stream: expected a list of streams in its place, or one name for it")

    def _is_no_number(self, _other: object) -> NoReturn:
        refuse(f"{self} is no number: expected an operator, such as a Map of a function")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _is_no_number
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __getitem__ = _is_no_number

    @checked
    def assume(self, *shape: Dim) -> Stream:
        """Return this stream with the shape that the program knows it to have.

        It has no hop of its own. A run checks it: the first group of another size is an error.

        Args:
            shape: outermost dimension first, as many as the stream has.

        Raises:
            ShapeError: the number of dimensions differs, or one is known to have another size.
        """
        return Assumed(self, shape, calling_place())

    @checked
    def laid_out(self, layout: Layout) -> Stream:
        """Return this stream with the layout that the program knows it to have.

        It has no hop of its own. Where two streams come together element by element, layouts that
        are stated are compared, and those that follow from them.

        Args:
            layout: as many tiles as the stream has, of their rows and columns.

        Raises:
            ShapeError: the stream is of another size, or is known to have another order.
        """
        return LaidOut(self, layout, calling_place())

    @checked
    def expect(
        self,
        compute: Callable[[], object],
        *,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
    ) -> None:
        """Say what the stream's tiles shall be, which functional mode compares as it does outputs.

        Where several streams and outputs are wrong, the first in wiring order is told first.

        Args:
            compute: returns the tiles in the nesting of the stream: an array whose dimensions are
                the stream's, then rows and columns of a tile. Where sizes are ragged, lists in
                its place, down to an array for each tile. A tile may come without what is
                padding; then its valid rows and columns are compared.
            rtol: see ``Program.expect``.
            atol: see there.
            equal_nan: see there.

        Raises:
            ProgramError: the stream is a feedback, carries no tiles, or is expected already.
        """
        place = calling_place()
        if self.node is None or not isinstance(self.value, TileType):
            what = "the stream that it is connected to" if self.node is None else "one of tiles"
            raise ProgramError(
                f"expect is told what {self} carries: expected {what}",
                file=place.file,
                line=place.line,
            )
        if self.port in self.node.expected:
            first = self.node.expected[self.port].place
            raise ProgramError(
                f"expect: {self.name} is expected at {first} already: expected one function for "
                "each stream",
                file=place.file,
                line=place.line,
            )
        tolerance = Tolerance.of(rtol, atol, equal_nan, place)
        self.node.expected[self.port] = Expectation(compute, tolerance, place)

    def __repr__(self) -> str:
        """Name, shape and element."""
        return in_short(self)

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield the fields for rich."""
        yield "name", self.name
        yield "shape", shape_text(self.shape)
        yield "value", str(self.value)

    def _repr_html_(self) -> str | None:
        return shown(self)

    def __str__(self) -> str:
        """Name and type, as messages show them."""
        return f"{self.name} {self.type}"


class Feedback(Stream):
    """A stream that is used before it exists: declare it, use it, then connect it once.

    It has no hop of its own.

    Attributes:
        place: where it was declared.
        connected_at: where it was connected.
    """

    @checked
    def __init__(self, stream_type: StreamType) -> None:
        """Promise a stream of this type.

        Raises:
            ProgramError: it is no type of a stream.
            ShapeError: its shape or its element type is none.
        """
        settle(stream_type, ShapeError)
        super().__init__(None, 0, stream_type)
        self.place: Final = calling_place()
        self.connected_at: Place | None = None
        self._source: Stream | None = None

    @property
    def connected(self) -> Stream:
        """The stream that ``connect`` was given.

        Raises:
            ProgramError: there was none.
        """
        if self._source is None:
            raise ProgramError(
                f"Feedback of {self.type} is used but never connected: expected connect(stream)",
                file=self.place.file,
                line=self.place.line,
            )
        return self._source

    @checked
    def connect(self, stream: Stream) -> None:
        """Say what the feedback carries.

        Raises:
            ProgramError: it was connected before, or to itself.
            ShapeError: the rank, a size or the element type is not the promised one.
        """
        place = calling_place()
        behind: Stream | None = stream
        while isinstance(behind, Feedback) and behind is not self:
            behind = behind._source
        if behind is self:
            raise ProgramError(
                f"Feedback of {self.type} is connected to itself: expected a stream that an "
                "operator makes",
                file=place.file,
                line=place.line,
            )
        if self._source is not None:
            raise ProgramError(
                f"Feedback is connected to {self._source} already: expected one connection",
                file=place.file,
                line=place.line,
            )
        sizes = zip(self.shape, stream.shape, strict=False)
        if (
            stream.rank != self.rank
            or without_ragged(stream.value) != without_ragged(self.value)
            or any(same(promised, found) is False for promised, found in sizes)
        ):
            raise ShapeError(
                f"Feedback was declared as {self.type}, but is connected to {stream}: "
                "expected the same shape and element type",
                file=place.file,
                line=place.line,
            )
        self._source = stream
        self.connected_at = place

    @property
    @override
    def claims(self) -> tuple[Claim, ...]:
        """Claims of the promised type that its operators cannot prove."""
        return _claims(self.connected, self.shape, self.place)

    def resolve(self) -> Stream:
        """What the feedback was connected to.

        Raises:
            ProgramError: it never was.
        """
        return self.connected.resolve()


class Assumed(Stream):
    """A stream with a stated shape, as in listing 1 of the paper; its producers do not change.

    Attributes:
        used: an operator reads the stream with this shape.
    """

    def __init__(self, stream: Stream, shape: tuple[Dim, ...], place: Place) -> None:
        super().__init__(stream.node, stream.port, StreamType(shape, stream.value))
        if stream.node is None:
            raise ProgramError(
                f"assume is told the shape of {stream}: expected the shape in the Feedback itself",
                file=place.file,
                line=place.line,
            )
        self.place: Final = place
        self.used = False
        self.is_laid_out = stream.is_laid_out
        self._stream: Final = stream
        known = [same(a, b) for a, b in zip(stream.shape, shape, strict=False)]
        if len(shape) != len(stream.shape) or False in known:
            raise ShapeError(
                f"assume says that {stream} has shape {shape_text(shape)}: expected "
                f"{counted(len(stream.shape), 'dimension')} that can be equal",
                file=place.file,
                line=place.line,
            )
        self._claims: Final = _claims(stream, shape, place)
        self.says_nothing: Final = None not in known
        _check_alike(stream, shape, place)
        stream.node.assumed.append(self)

    @property
    @override
    def claims(self) -> tuple[Claim, ...]:
        return self._claims

    @override
    def resolve(self) -> Stream:
        return self._stream.resolve()

    @property
    @override
    def laid(self) -> Laid:
        return self._stream.laid

    def note_reader(self) -> None:
        """Note that an operator reads the stream under this shape."""
        self.used = True


class LaidOut(Assumed):
    """A stream under a layout that the program states; its shape stays the same."""

    def __init__(self, stream: Stream, layout: Layout, place: Place) -> None:
        if stream.node is None:
            raise ProgramError(
                f"laid_out is told the order of {stream}: expected the stream that it is "
                "connected to",
                file=place.file,
                line=place.line,
            )
        misfit = unfit(layout, stream.type)
        if misfit is not None:
            raise ShapeError(
                f"laid_out says that {stream} is {layout}, {misfit}: "
                "expected a layout of the stream's size",
                file=place.file,
                line=place.line,
            )
        super().__init__(stream, stream.shape, place)
        self.is_laid_out = True
        self._layout: Final = layout
        known = stream.layout
        if known is not None and differ(known, layout):
            raise ShapeError(
                f"laid_out gives {stream} another order than it has: "
                f"{differ_text(known, layout, stream.type)}",
                file=place.file,
                line=place.line,
            )

    @property
    @override
    def laid(self) -> Laid:
        return Laid(self._layout)

    @override
    def note_reader(self) -> None:
        super().note_reader()
        if isinstance(self._stream, Assumed):
            self._stream.note_reader()


def _claims(stream: Stream, shape: tuple[Dim, ...], place: Place) -> tuple[Claim, ...]:
    """Return the claims of a ``shape`` that is stated at ``place``."""
    sizes = zip(stream.shape, shape, strict=True)
    new = [
        Claim(stream.resolve().name, len(shape) - 1 - axis, found, assumed, place)
        for axis, (found, assumed) in enumerate(sizes)
        if same(found, assumed) is None
    ]
    return (*stream.claims, *new)


def _check_alike(stream: Stream, shape: tuple[Dim, ...], place: Place) -> None:
    """Refuse a size that contradicts another statement about the same stream."""
    assert stream.node is not None
    for other in stream.node.assumed:
        sizes = zip(other.shape, shape, strict=True)
        if other.port == stream.port and any(same(*each) is False for each in sizes):
            raise ShapeError(
                f"assume says that {stream} has shape {shape_text(shape)}: expected that of "
                f"{other.place}, {shape_text(other.shape)}",
                file=place.file,
                line=place.line,
            )


def check_same_shape(operator: str, left: Stream, right: Stream) -> None:
    """Raise an error if two streams cannot be read element by element.

    Raises:
        ShapeError: ranks differ, or dimensions that are known to differ.
    """
    if left.rank == right.rank and (
        left.shape == right.shape
        or all(same(a, b) is not False for a, b in zip(left.shape, right.shape, strict=True))
    ):
        return
    raise ShapeError(f"{operator} joins {left} and {right}: expected the same shape")


def check_orders(operator: str, inputs: tuple[Stream, ...], place: Place) -> None:
    """Refuse elementwise inputs with different orders of one tensor, if one is stated."""
    for left, right in combinations(inputs, 2):
        if not (left.is_laid_out or right.is_laid_out):
            continue
        one, other = left.layout, right.layout
        if one is not None and other is not None and differ(one, other):
            raise ShapeError(
                f"{operator} joins {left} and {right} in two orders: "
                f"{differ_text(one, other, left.type)}",
                file=place.file,
                line=place.line,
            )


_SHOWN: Final = 4
"""First elements of tiles in a message: the first that differ are among them, if they can be."""


def unfit(layout: Layout, stream: StreamType) -> str | None:
    """Return the difference between ``layout`` and ``stream``, None if they fit."""
    value: ValueType = stream.value
    shape = stream.shape
    if isinstance(value, BufferType):
        shape = (*shape, *value.shape)
        value = value.tile
    if not all(map(is_static, shape)) or product(shape) != layout.count:
        return f"{counted(layout.count, 'tile')} in place of {shape_text(shape)}"
    if isinstance(value, TupleType):
        return None
    if not isinstance(value, TileType) or (value.rows, value.cols) != (layout.rows, layout.cols):
        return f"tiles of {layout.rows}x{layout.cols} in place of {value}"
    return None


def differ(left: Layout, right: Layout) -> bool:
    """Whether two layouts of one tensor, with equal tiles, have different orders."""
    same_tiles = (left.shape, left.tile) == (right.shape, right.tile)
    return same_tiles and not left.same_order(right)


def differ_text(left: Layout, right: Layout, stream: StreamType) -> str:
    """Return both orders, and the converter from ``left`` to ``right``, as errors show them."""
    first = _first_difference(left, right)
    return (
        f"{_offsets(left, first)} of {left}, and {_offsets(right, first)} of {right}: expected "
        f"one order, such as behind Convert{_cost(left, right, stream)}"
    )


def _first_difference(left: Layout, right: Layout) -> int:
    """Return the first tile that differs between two orders."""
    count = min(left.count, right.count)
    others = (left.offsets()[:count] != right.offsets()[:count]).any(axis=1).nonzero()[0]
    return int(others[0]) if len(others) else count


def _offsets(layout: Layout, first: int) -> str:
    """Return the first elements of the first tiles, and of the first that differs."""
    shown = max(_SHOWN, first + 1)
    offsets = [str(tuple(each)) for each in layout.offsets()[:shown].tolist()]
    if len(offsets) > _SHOWN:
        offsets = [*offsets[: _SHOWN - 1], "...", offsets[-1]]
    more = ", ..." if shown < layout.count else ""
    return f"{', '.join(offsets)}{more}"


def _cost(left: Layout, right: Layout, stream: StreamType) -> str:
    """Return the on-chip bytes of the converter in words; empty if none."""
    value = stream.value.tile if isinstance(stream.value, BufferType) else stream.value
    if not isinstance(value, TileType):
        return ""
    # Only two orders that differ are converted.
    from fabric.graph.layouts.reordering import convert_bytes

    try:
        found = convert_bytes(left, right, value.dtype.itemsize)
    except ShapeError:
        return ""
    shape = "x".join(map(str, found.shape))
    return (
        f", which keeps {shape} of it in {counted(found.tiles, 'tile')}, "
        f"{counted(found.bytes, 'byte')}"
    )

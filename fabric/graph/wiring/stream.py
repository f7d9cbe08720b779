"""Streams while a program is wired: producers, shapes, element types and layouts.

Layouts are computed at first use (``Operator.layouts``), since most programs do not use them.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final, NoReturn

from typing_extensions import override

from fabric.display.parts import Rows, Sheet
from fabric.display.result import ShownInShort
from fabric.graph.arguments.described import checked, refuse, settle
from fabric.graph.layouts.layout import Layout, Orders
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
from fabric.graph.wiring.expectation import Bound, Expectation, Tolerance
from fabric.messages.errors import ShapeError
from fabric.messages.place import Place, calling_place
from fabric.messages.text import counted


class Producer:
    """The part of a node that its streams use.

    Attributes:
        assumed: outputs with stated shapes or layouts.
        expected: expectations of outputs, by port.
        is_laid_out: whether the program states the layout of an input or of an earlier stream.
    """

    operator: Any

    def __init__(self, name: str, inputs: tuple[Stream, ...]) -> None:
        self.name: Final = name
        self.inputs = inputs
        self.assumed: list[Assumed] = []
        self.expected: dict[int, Expectation] = {}
        self.is_laid_out: Final[bool] = any(stream.is_laid_out for stream in inputs)

    @property
    def laid(self) -> Orders:
        """The layouts of the outputs, computed at first use."""
        raise NotImplementedError


class Stream(ShownInShort):
    """The output of an operator, while the program is wired.

    Attributes:
        port: the number of the output.
        type: shape and element type.
        shape: the dimensions, outermost first.
        rank: the number of dimensions minus one.
        is_laid_out: whether the program states a layout of this stream or of an earlier stream.
    """

    def __init__(self, node: Producer | None, port: int, stream_type: StreamType) -> None:
        self.node = node
        self.port: Final = port
        self.type: Final = stream_type
        # Attributes, not properties: wiring reads them thousands of times.
        self.shape: Final[tuple[Dim, ...]] = stream_type.shape
        self.rank: Final = len(self.shape) - 1
        self.value: Final[ValueType] = stream_type.value
        self.is_laid_out = node is not None and node.is_laid_out

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Sizes of dimensions that the program states and its operators cannot prove."""
        return ()

    @property
    def name(self) -> str:
        """The producer and its port, as in ``partition_1.0``."""
        return "feedback" if self.node is None else f"{self.node.name}.{self.port}"

    @property
    def laid(self) -> Layout | str:
        """The layout, or the reason why it is unknown."""
        if self.node is None:
            return "a feedback is used before its order is known"
        return self.node.laid[self.port]

    @property
    def layout(self) -> Layout | None:
        """The tiles of a tensor that it carries, in their order; None if unknown."""
        return laid if isinstance(laid := self.laid, Layout) else None

    @property
    def no_layout(self) -> str | None:
        """The reason why the layout is unknown; None if it is known."""
        return laid if isinstance(laid := self.laid, str) else None

    def resolve(self) -> Stream:
        """Return the stream itself; for a feedback, the stream that it was connected to."""
        return self

    def __iter__(self) -> NoReturn:
        """Raise a ProgramError, since a stream cannot be unpacked as several streams."""
        refuse(f"{self} is one stream: expected a list of streams, or one name for the stream")

    def _refuse_arithmetic(self, _other: object) -> NoReturn:
        refuse(f"{self} is not a number: expected an operator, such as a Map of a function")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_arithmetic
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __getitem__ = _refuse_arithmetic

    @checked
    def assume(self, *shape: Dim) -> Stream:
        """Return this stream with a shape that the program states.

        This adds no hop. A run checks the shape. The first group of another size is an error.

        Args:
            shape: all dimensions of the stream, outermost first.

        Raises:
            ShapeError: the number of dimensions differs, or the stream has another size.
        """
        if self.node is None:
            refuse(f"assume is called on {self}: expected the shape in the Feedback itself")
        claim = f"assume says that {self} has shape {shape_text(shape)}"
        if len(shape) != len(self.shape) or _differ(self.shape, shape):
            dimensions = counted(len(self.shape), "dimension")
            refuse(f"{claim}: expected {dimensions} matching {shape_text(self.shape)}", ShapeError)
        for other in self.node.assumed:
            if other.port == self.port and _differ(other.shape, shape):
                first = f"the shape at {other.place}, {shape_text(other.shape)}"
                refuse(f"{claim}: expected {first}", ShapeError)
        self.node.assumed.append(assumed := Assumed(self, shape, None, calling_place()))
        return assumed

    @checked
    def laid_out(self, layout: Layout) -> Stream:
        """Return this stream with a layout that the program states.

        This adds no hop. An operator that combines two streams element by element compares their
        layouts if both are known, and one is stated or follows from a stated layout.

        Args:
            layout: has the stream's number of tiles, with their rows and columns.

        Raises:
            ShapeError: the stream has another size or another order.
        """
        if self.node is None:
            refuse(f"laid_out is called on {self}: expected the stream that it is connected to")
        misfit = unfit(layout, self.type)
        if misfit is not None:
            refuse(
                f"laid_out says that {self} is {layout}, {misfit}: "
                "expected a layout of the stream's size",
                ShapeError,
            )
        if self.layout is not None and differ(self.layout, layout):
            refuse(
                f"laid_out gives {self} another order than it has: "
                f"{differ_text(self.layout, layout, self.type)}",
                ShapeError,
            )
        self.node.assumed.append(assumed := Assumed(self, self.shape, layout, calling_place()))
        return assumed

    @checked
    def expect(
        self,
        compute: Callable[[], object],
        *,
        rtol: Bound | None = None,
        atol: Bound | None = None,
        equal_nan: bool = False,
    ) -> None:
        """State the expected tiles of the stream; functional mode compares them like outputs.

        Wrong streams are reported in wiring order, before wrong outputs.

        Args:
            compute: returns an array with the dimensions of the stream, then the rows and columns
                of a tile; for ragged sizes, nested lists of arrays, ``[]`` for an empty tensor.
                If the array of a tile has no padding, only valid rows and columns are compared.
            rtol: relative tolerance, as in ``Program.expect``.
            atol: absolute tolerance, as in ``Program.expect``.
            equal_nan: a NaN is right if a NaN is expected.

        Raises:
            ProgramError: the stream is a feedback, carries no tiles, or has an expectation already.
        """
        if self.node is None or not isinstance(self.value, TileType):
            what = "a stream of tiles" if self.node else "the stream that it is connected to"
            refuse(f"expect is called on {self}: expected {what}")
        if self.port in self.node.expected:
            first = self.node.expected[self.port].place
            refuse(
                f"expect: {self.name} is expected at {first} already: expected one function for "
                "each stream"
            )
        tolerance = Tolerance(rtol, atol, equal_nan)
        self.node.expected[self.port] = Expectation(compute, tolerance, calling_place())

    def sheet(self) -> Sheet:
        """Yield its name, type and producer."""
        node = self.node
        producer = "a feedback" if node is None else node.name
        if node is not None and hasattr(node, "place"):
            producer += f": {type(node.operator).__name__} at {node.place.brief}"
        shape, _, value = str(self.type).partition(" of ")
        rows = [("stream", self.name), ("shape", shape), ("element", value), ("from", producer)]
        yield Rows(("", ""), rows)

    @override
    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        yield "name", self.name
        yield "shape", shape_text(self.shape)
        yield "value", str(self.value)

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class Feedback(Stream):
    """A stream that is used before it exists: declare it, use it, then connect it once.

    A feedback adds no hop.

    Attributes:
        place: the line that declares it.
        connected_at: the line that connects it; None until then.
    """

    @checked
    def __init__(self, stream_type: StreamType) -> None:
        """Declare a stream of this type.

        Raises:
            ProgramError: ``stream_type`` is not a StreamType.
            ShapeError: its shape or its element type is invalid.
        """
        settle(stream_type, ShapeError)
        super().__init__(None, 0, stream_type)
        self.place: Final = calling_place()
        self.connected_at: Place | None = None
        self._source: Stream | None = None

    @property
    def connected(self) -> Stream:
        """The stream that it was connected to; a ProgramError if it was never connected."""
        if self._source is None:
            refuse(
                f"Feedback of {self.type} is used but never connected: expected connect(stream)",
                place=self.place,
            )
        return self._source

    @checked
    def connect(self, stream: Stream) -> None:
        """Connect the feedback to the stream that it carries.

        Raises:
            ProgramError: it was connected before, or to itself.
            ShapeError: the rank, a size or the element type differs from the declared type.
        """
        place = calling_place()
        behind: Stream | None = stream
        while isinstance(behind, Feedback) and behind is not self:
            behind = behind._source
        if behind is self:
            refuse(
                f"Feedback of {self.type} is connected to itself: expected a stream that an "
                "operator makes"
            )
        if self._source is not None:
            refuse(f"Feedback is connected to {self._source} already: expected one connection")
        if (
            stream.rank != self.rank
            or without_ragged(stream.value) != without_ragged(self.value)
            or _differ(self.shape, stream.shape)
        ):
            refuse(
                f"Feedback was declared as {self.type}, but is connected to {stream}: "
                "expected the same shape and element type",
                ShapeError,
            )
        self._source = stream
        self.connected_at = place

    @property
    @override
    def claims(self) -> tuple[Claim, ...]:
        return _claims(self.connected, self.shape, self.place)

    def resolve(self) -> Stream:
        return self.connected.resolve()


class Assumed(Stream):
    """A stream with a stated shape, as in listing 1 of the paper, or with a stated layout.

    Attributes:
        stated_layout: None if the shape is stated.
        used: whether an operator reads the stream with this shape.
        is_redundant: whether the operators prove the shape.
    """

    def __init__(
        self, stream: Stream, shape: tuple[Dim, ...], layout: Layout | None, place: Place
    ) -> None:
        super().__init__(stream.node, stream.port, StreamType(shape, stream.value))
        self.place: Final = place
        self.stated_layout: Final = layout
        self.used = False
        self.is_laid_out = layout is not None or stream.is_laid_out
        self._stream: Final = stream
        self._claims: Final = _claims(stream, shape, place)
        self.is_redundant: Final = self._claims == stream.claims

    @property
    @override
    def claims(self) -> tuple[Claim, ...]:
        return self._claims

    @override
    def resolve(self) -> Stream:
        return self._stream.resolve()

    @property
    @override
    def laid(self) -> Layout | str:
        return self.stated_layout or self._stream.laid

    def note_reader(self) -> None:
        self.used = True
        if self.stated_layout is not None and isinstance(self._stream, Assumed):
            self._stream.note_reader()


def _claims(stream: Stream, shape: tuple[Dim, ...], place: Place) -> tuple[Claim, ...]:
    sizes = zip(stream.shape, shape, strict=True)
    new = [
        Claim(stream.resolve().name, len(shape) - 1 - axis, computed, assumed, place)
        for axis, (computed, assumed) in enumerate(sizes)
        if same(computed, assumed) is None
    ]
    return (*stream.claims, *new)


def _differ(left: Sequence[Dim], right: Sequence[Dim]) -> bool:
    """Whether two sizes differ for all values of symbols."""
    return any(same(*sizes) is False for sizes in zip(left, right, strict=False))


def check_same_shape(operator: str, left: Stream, right: Stream) -> None:
    """Raise an error if two streams cannot be read element by element.

    Raises:
        ShapeError: the ranks differ, or two sizes that cannot be equal for any symbols.
    """
    if left.rank != right.rank or _differ(left.shape, right.shape):
        raise ShapeError(f"{operator} joins {left} and {right}: expected the same shape")


def check_orders(operator: str, inputs: tuple[Stream, ...]) -> None:
    """Refuse inputs with different orders of one tensor, if one of the orders is stated."""
    for left, right in combinations(inputs, 2):
        if not (left.is_laid_out or right.is_laid_out):
            continue
        one, other = left.layout, right.layout
        if one is not None and other is not None and differ(one, other):
            refuse(
                f"{operator} joins {left} and {right} in two orders: "
                f"{differ_text(one, other, left.type)}",
                ShapeError,
            )


_SHOWN: Final = 4
"""The most tiles in a message. If the first differing tile is not among them, it is shown last."""


def unfit(layout: Layout, stream: StreamType) -> str | None:
    """Return the difference between ``layout`` and ``stream``; None if they fit."""
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
        f"one order, for instance from a Convert{_cost(left, right, stream)}"
    )


def _first_difference(left: Layout, right: Layout) -> int:
    count = min(left.count, right.count)
    differing = (left.offsets()[:count] != right.offsets()[:count]).any(axis=1).nonzero()[0]
    return int(differing[0]) if len(differing) else count


def _offsets(layout: Layout, first: int) -> str:
    """Return the offsets of the first tiles, and of tile ``first`` if it is not among them."""
    shown = max(_SHOWN, first + 1)
    offsets = [str(tuple(offset)) for offset in layout.offsets()[:shown].tolist()]
    if len(offsets) > _SHOWN:
        offsets = [*offsets[: _SHOWN - 1], "...", offsets[-1]]
    more = ", ..." if shown < layout.count else ""
    return f"{', '.join(offsets)}{more}"


def _cost(left: Layout, right: Layout, stream: StreamType) -> str:
    value = stream.value.tile if isinstance(stream.value, BufferType) else stream.value
    if not isinstance(value, TileType):
        return ""
    # Only messages about different orders need this import.
    from fabric.graph.layouts.reordering import convert_bytes

    try:
        converter = convert_bytes(left, right, value.dtype.itemsize)
    except ShapeError:
        return ""
    shape = "x".join(map(str, converter.shape))
    return (
        f" with a buffer of {counted(converter.tiles, 'tile')} for {shape} elements, "
        f"{counted(converter.bytes, 'byte')}"
    )

"""Where an operator is in its inputs, and what it says where they differ.

A stream may close a group twice: a value that closes some dimensions, then a bare stop that closes
more of them (a Flatten leaves that behind where the last part of a group is empty). So two streams
of one structure need not carry equal stops: where they differ, the lower side has to go on with a
bare stop that closes just what its last element left open.
"""

from __future__ import annotations

from typing import Final

from fabric import OperatorError
from fabric.extend import Element, Empty, Ports

__all__ = ["Track", "closing", "differ"]


class Track:
    """Where an operator is in one of its inputs.

    Attributes:
        port, source: the input.
        element: the last one that was read; None before the first and at the end.
        stop: its level; -1 where there is none.
        level: the dimensions it closes outside of the operator's sub-tensors; 0 for none.
    """

    __slots__ = ("_inner", "_place", "element", "level", "port", "source", "stop")

    def __init__(self, ports: Ports, port: int, inner: int = 0) -> None:
        """Stand before the first element of input ``port``.

        Args:
            ports: of the operator.
            port: which input.
            inner: dimensions of a sub-tensor, which the levels leave out.
        """
        self.port: Final = port
        self.source: Final = ports.inputs[port]
        self.element: Element | None = None
        self.stop = -1
        self.level = 0
        self._inner = inner
        self._place = [0] * len(ports.input_types[port].shape)

    def passed(self, element: Element | None) -> None:
        """Note that ``element``, or the end, comes next."""
        stop = self.stop
        if stop >= 0:
            place = self._place
            if stop:
                place[:stop] = [0] * stop
            place[stop] += 1
        self.element = element
        self.stop = stop = -1 if element is None else element[1]
        self.level = stop - self._inner

    @property
    def memory(self) -> tuple[int, int | None]:
        """What the last element closed, and whether a value did; its place is for errors only."""
        return self.stop, self.empty_dimension

    @property
    def outer_dimensions(self) -> int:
        """How many dimensions there are outside of a sub-tensor."""
        return len(self._place) - self._inner

    @property
    def is_outside(self) -> bool:
        """Whether what is empty here is outside of a sub-tensor."""
        dimension = self.empty_dimension
        return dimension is not None and dimension >= 0

    @property
    def empty_dimension(self) -> int | None:
        """Which dimension outside of a sub-tensor a bare stop stands for; None for a value."""
        if self.element is None or not isinstance(self.element[0], Empty):
            return None
        return self.element[0].dimension - self._inner

    @property
    def described(self) -> str:
        """The element, where it stands in its tensor, who made it and what it closes."""
        producer = self.source.producer.name
        if self.element is None:
            return f"the end of {producer} at {self._place[::-1]}"
        value, stop = self.element
        what = str(value)
        if isinstance(value, Empty):
            what = f"an empty dimension {value.dimension}"
        closes = "1 dimension" if stop == 1 else f"{stop} dimensions"
        return f"{what} at {self._place[::-1]} of {producer} closes {closes}"


async def closing(ports: Ports, low: Track, high: Track) -> None:
    """Peek the bare stop with which ``low`` has to go on, since ``high`` closes more.

    Raises:
        OperatorError: something else comes.
    """
    element = await low.source.peek()
    if element is not None:
        value = element[0]
        if isinstance(value, Empty) and value.dimension == low.stop:
            low.passed(element)
            return
    raise differ(ports, low, high)


def differ(ports: Ports, *tracks: Track) -> OperatorError:
    """Return the error for inputs whose structures differ where ``tracks`` stand."""
    in_order = sorted(tracks, key=lambda track: track.port)
    found = " and ".join(track.described for track in in_order)
    return ports.failure(f"{found}: expected equal structures")

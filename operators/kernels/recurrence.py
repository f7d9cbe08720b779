"""Recurrences: a Feedback carries the state of one step to the next step.

Each tensor of a loop has the step as its first dimension: the state before each step, the tensors
computed from it, and the state after each step. Any kernels may be in between if they take one
step after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Feedback, Layout, Stream, StreamType
from fabric.extend import Loop
from operators.bufferize import Bufferize, Streamify
from operators.kernels.following import rows_layout
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.tensors import Computed, View
from operators.partition import Partition
from operators.reassemble import Reassemble
from operators.shape import redimensioned
from operators.sources import Consumer, Selectors
from operators.streams.reading import tile_of


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A loop of at least 2 steps at a line of the user's model, with two kernels for each state."""

    steps: int
    file: str | None
    line: int | None
    states: dict[int, States] = field(default_factory=dict)
    behind: dict[int, Behind] = field(default_factory=dict)


def by_steps(steps: int, layout: Layout) -> Layout:
    """Return the layout of ``steps`` tensors, one after the other, each in ``layout``."""
    loops = [
        Loop(steps, 1, 0),
        *(loop._replace(dim=None if loop.dim is None else loop.dim + 1) for loop in layout.loops),
    ]
    shape, tile, start = (steps, *layout.shape), (1, *layout.tile), (0, *layout.start)
    return Layout.of_loops(shape, tile, start, loops)


def is_by_steps(layout: Layout, steps: int) -> bool:
    """Whether all tiles of a step come before the tiles of the next step."""
    size, count = layout.shape[0] if layout.shape else 0, layout.count
    if not size or size % steps or count % steps:
        return False
    parts = layout.cut(count // steps)
    if parts is None:
        return False
    outer, _ = parts
    # As the last step ends in the tensor, no step reaches into the next one.
    return layout.nested(outer).canonical().loops == (Loop(steps, size // steps, 0),)


def _step_layout(shape: tuple[int, ...], rows: int) -> Layout:
    """Return tiles of about ``rows`` whole rows of one step's tensor."""
    if not shape:
        return Layout((), (), (), (), ())
    return rows_layout(shape, rows, shape[-1])


class States(Kernel):
    """The state before each step: the initial state, then the result of each step but the last.

    Attributes:
        feedback: the state of the next step, in the open program.
    """

    family: ClassVar = "recurrence"

    def __init__(self, name: str, first: View, steps: int, rows: int) -> None:
        """Begin with ``first``; return ``[steps, *first.shape]`` in tiles of ``rows`` rows."""
        self.steps: Final = steps
        step = _step_layout(first.shape, rows)
        layout = by_steps(steps, step)
        shape = first.shape or (1,)
        if not first.shape:
            step = Layout((1,), (1,), (), (), ())
            layout = Layout((steps,), (1,), (steps,), (1,), (0,))
        self.result: Final = Computed(name, layout.shape, first.dtype, layout)
        super().__init__(name, (Operand(first.reshaped(shape), step),), self.result)
        self.feedback: Feedback | None = None

    @property
    def tiles(self) -> int:
        return self.result.layout.count // self.steps

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (first,) = inputs
        assert isinstance(first, Stream)
        self.feedback = Feedback(StreamType((self.steps - 1, self.tiles), tile_of(first)))
        turns = np.minimum(np.arange(self.steps), 1)
        first = redimensioned(first, (1, self.tiles))
        joined = Reassemble(rank=1, name=self.name)(
            [first, self.feedback], _one_of_two(turns, f"{self.name}_turns")
        )
        return (redimensioned(joined, (1, *self.result.layout.trips)),)


class Behind(Kernel):
    """The state after each step, which returns to ``states``; the last state is the result."""

    family: ClassVar = "recurrence"

    def __init__(self, name: str, states: States, state: View) -> None:
        before = states.result
        step = _without_steps(before.layout)
        self.result: Final = Computed(name, step.shape, before.dtype, step)
        operand = Operand(state.reshaped(before.shape), before.layout)
        super().__init__(name, (operand,), self.result)
        self.states: Final = states
        self.is_read = True

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (state,) = inputs
        assert isinstance(state, Stream)
        states = self.states
        assert states.feedback is not None
        steps, tiles = states.steps, states.tiles
        ends = np.arange(steps) == steps - 1
        state = redimensioned(state, (1, steps, tiles))
        route = _one_of_two(ends.astype(int), f"{self.name}_route")
        going, last = Partition(2, rank=1, name=self.name)(state, route)
        states.feedback.connect(going.assume(steps - 1, tiles))
        last = last.assume(1, tiles)
        if not self.is_read:
            Consumer(name=f"{self.name}_last")(last)
        return (redimensioned(last, (1, *self.result.layout.trips)) if self.is_read else last,)


class Entrance(Kernel):
    """An input of a loop from outside, step by step, through a small buffer."""

    family: ClassVar = "recurrence"

    def __init__(self, name: str, tensor: View, steps: int, rows: int) -> None:
        """Return ``tensor``, ``[steps, *shape]``, in tiles of about ``rows`` rows of one step."""
        layout = by_steps(steps, _step_layout(tensor.shape[1:], rows))
        result = Computed(name, layout.shape, tensor.dtype, layout)
        super().__init__(name, (Operand(tensor, layout),), result)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        return tuple(inputs)


class Reversed(Entrance):
    """The first dimension reversed: all places are buffered, and read backwards."""

    def __init__(self, name: str, tensor: View, rows: int) -> None:
        """Return ``tensor``, ``[places, *shape]``, in tiles of about ``rows`` rows of one place."""
        super().__init__(name, tensor, tensor.shape[0], rows)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (stream,) = inputs
        assert isinstance(stream, Stream)
        layout = self.operands[0].layout
        assert layout is not None
        places, count = layout.shape[0], layout.count
        tiles = count // places
        buffer = Bufferize(1, name=f"{self.name}_kept")(redimensioned(stream, (1, count)))
        backwards = Streamify(
            shape=(places, tiles), strides=(-tiles, 1), offset=(places - 1) * tiles, name=self.name
        )(buffer)
        return (redimensioned(backwards, (1, *layout.trips)),)


def _without_steps(layout: Layout) -> Layout:
    if len(layout.shape) == 1:
        return Layout((1,), (1,), (), (), ())
    loops = [
        loop._replace(dim=None if loop.dim is None else loop.dim - 1)
        for loop in layout.loops
        if loop.dim != 0
    ]
    return Layout.of_loops(layout.shape[1:], layout.tile[1:], (), loops)


def _one_of_two(turns: np.ndarray, name: str) -> Stream:
    """Return selectors of one of two streams each, [1, len(turns)].

    They already have the outermost dimension. An operator that adds it would block the loop, since
    it sends its last element only after the end of the stream.
    """
    return Selectors(turns[:, np.newaxis], 2, name=name)()

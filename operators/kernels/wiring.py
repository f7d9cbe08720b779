"""From a model to the operators of the program that is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

import sympy

from fabric import Layout, Program, Stream
from operators.convert import Convert
from operators.kernels.edges import joint_of
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.loading import load
from operators.kernels.model import Edge, Model
from operators.kernels.rearranging import rearranged
from operators.kernels.tensors import Computed, Opaque, Pulled, Source, Stored
from operators.streams.dimensions import redimensioned

__all__ = ["wire"]


def wire(program: Program, model: Model, spilled: Collection[Edge] = ()) -> None:
    """Wire the kernels of ``model`` in ``program``, which is open.

    Args:
        program: that is wired.
        model: what it computes.
        spilled: edges that go through off-chip memory, whether a converter could do it or not.
    """
    joints = _Joints({(each.consumer, each.operand) for each in spilled})
    for kernel in model.kernels:
        inputs = [
            joints.joined(kernel, index, operand) for index, operand in enumerate(kernel.operands)
        ]
        given = kernel.wire(inputs)
        joints.streams.update(zip(kernel.results, given, strict=True))
    _deepen_forks(program)


class _Joints:
    """How what kernels give comes to those that read it.

    Attributes:
        streams: what has been given so far.
    """

    def __init__(self, spilled: Collection[tuple[Kernel, int]]) -> None:
        """Begin with nothing; ``spilled`` operands come through off-chip memory."""
        self.streams: Final[dict[Source, Streams]] = {}
        self._spilled: Final = spilled
        self._converted: Final[dict[tuple[Source, Layout, bool], Stream]] = {}

    def joined(self, kernel: Kernel, index: int, operand: Operand) -> Streams:
        """Return an operand as its kernel reads it."""
        view, layout = operand.view, operand.layout
        match view.source:
            case Opaque():
                return self.streams[view.source]
            case Stored():
                return load(f"{kernel.name}_load_{view.source.name}", operand)
            case Computed():
                assert layout is not None
                joint = joint_of(operand)
                through = (kernel, index) in self._spilled or joint.buffer_bytes is None
                stream = self._as_pulled(view.source, joint.pulled, through=through)
                stream = rearranged(stream, joint.pulled.places, broadcasts=operand.broadcasts)
                return redimensioned(stream, (1, *layout.trips))
            case _:
                raise TypeError(f"{view.source} of {kernel.name}, operand {index}")

    def _as_pulled(self, source: Computed, pulled: Pulled, *, through: bool) -> Stream:
        """Return a source in another layout: readers that want the same one share a converter."""
        stream = self.streams[source]
        assert isinstance(stream, Stream)
        if pulled.layout.same_order(source.layout) and not through:
            return stream
        key = source, pulled.layout.canonical(), through
        if key not in self._converted:
            self._converted[key] = _converted(stream, source, pulled, through=through)
        return self._converted[key]


def _converted(stream: Stream, source: Computed, pulled: Pulled, *, through: bool) -> Stream:
    if through:
        from operators.through_memory import through_memory

        return through_memory(stream, source.layout, pulled.layout)
    return Convert(pulled.layout)(stream.laid_out(source.layout))


def _deepen_forks(program: Program) -> None:
    """Give channels behind a fork room for all that passes, so that no branch holds up another.

    Where two branches of a program meet again, the shorter one waits until the longer one has its
    first result; the fork must not wait with it. What the channels need is ``size``'s to find.
    """
    readers = Counter(
        (source.node, source.port)
        for node in program.nodes
        for source in (each.resolve() for each in node.inputs)
    )
    for node in program.nodes:
        for index, stream in enumerate(node.inputs):
            source = stream.resolve()
            if readers[source.node, source.port] < 2:
                continue
            count = sympy.sympify(source.type.count).subs(program.sizes)
            if count.is_number:
                program.deepen(f"{node.name}.{index}", max(1, int(sympy.ceiling(count))))

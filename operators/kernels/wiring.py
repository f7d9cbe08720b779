"""From a model to the operators of the program that is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import sympy

from fabric import Program, Stream
from operators.functions.transpose import Transpose
from operators.kernels.edges import joint_of
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.loading import load
from operators.kernels.model import Edge, Model
from operators.kernels.tensors import Computed, Opaque, Pulled, Source, Stored
from operators.map import Map
from operators.streams.dimensions import redimensioned

__all__ = ["wire"]


def wire(program: Program, model: Model, spilled: Collection[Edge] = ()) -> None:
    """Wire the kernels of ``model`` in ``program``, which is open.

    Args:
        program: that is wired.
        model: what it computes.
        spilled: edges that go through off-chip memory, whether a converter could do it or not.
    """
    streams: dict[Source, Streams] = {}
    through = {(each.consumer, each.operand) for each in spilled}
    for kernel in model.kernels:
        inputs = [
            _joined(streams, kernel, index, operand, spilled=(kernel, index) in through)
            for index, operand in enumerate(kernel.operands)
        ]
        given = kernel.wire(inputs)
        streams.update(zip(kernel.results, given, strict=True))
    _deepen_forks(program)


def _joined(
    streams: dict[Source, Streams], kernel: Kernel, index: int, operand: Operand, *, spilled: bool
) -> Streams:
    """Return an operand as its kernel reads it."""
    view, layout = operand.view, operand.layout
    match view.source:
        case Opaque():
            return streams[view.source]
        case Stored():
            return load(f"{kernel.name}_load_{view.source.name}", operand)
        case Computed():
            assert layout is not None
            stream = streams[view.source]
            assert isinstance(stream, Stream)
            joint = joint_of(operand)
            result = _converted(
                stream, view.source, joint.pulled, spilled or joint.buffer_bytes is None
            )
            if joint.pulled.transposed:
                result = Map(Transpose())(result)
            return redimensioned(result, (1, *layout.trips))
        case _:
            raise TypeError(f"{view.source} of {kernel.name}, operand {index}")


def _converted(stream: Stream, source: Computed, pulled: Pulled, through: bool) -> Stream:
    if pulled.layout.same_order(source.layout):
        return stream
    from operators.convert import Convert
    from operators.through_memory import through_memory

    if through:
        return through_memory(stream, source.layout, pulled.layout)
    return Convert(pulled.layout)(stream)


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

"""A model as a list of kernels, and its wiring into the operators of the open program.

The wiring includes loads of stored tensors, converters, and paths through memory. Kernels in a loop
of the model have to take the steps of the loop one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Final

from fabric import Layout, Program, ProgramError, Stream
from fabric.extend import Loop
from operators.convert import Convert, is_matrix, loaded, through_memory
from operators.kernels.following import unrepeated
from operators.kernels.kernel import Kernel, Operand, Streams, is_convertible
from operators.kernels.recurrence import Recurrence, is_by_steps
from operators.kernels.row_local import rearranged
from operators.kernels.schedule import number_of
from operators.kernels.tensors import Computed, Opaque, Source, Stored, View
from operators.shape import redimensioned


@dataclass(frozen=True, eq=False)
class Model:
    """Kernels in topological order, stored outputs by name, and loops by number."""

    kernels: list[Kernel] = field(default_factory=list)
    outputs: dict[str, View] = field(default_factory=dict)
    loops: dict[int, Recurrence] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def name(self, wish: str) -> str:
        """Return ``wish``, with a number if it is taken."""
        name, number = wish, 1
        while name in self._names:
            number += 1
            name = f"{wish}_{number}"
        self._names.add(name)
        return name

    def edges(self) -> list[Operand]:
        """Return the operands that are results of kernels, in the order of the readers."""
        results = {result for kernel in self.kernels for result in kernel.results}
        return [operand for operand in self._operands if operand.view.source in results]

    def readers(self) -> Counter[Source]:
        """The number of operands and outputs that read each source."""
        views = [*(operand.view for operand in self._operands), *self.outputs.values()]
        return Counter(view.source for view in views)

    @property
    def _operands(self) -> list[Operand]:
        return [operand for kernel in self.kernels for operand in kernel.operands]

    def drop_unread(self) -> None:
        """Drop kernels with only unread results, unless they close a loop."""
        closing = [each for loop in self.loops.values() for each in loop.behind.values()]
        while True:
            readers = self.readers()
            kept = [
                each
                for each in self.kernels
                if not each.results
                or any(readers.get(one) for one in each.results)
                or each in closing
            ]
            if len(kept) == len(self.kernels):
                break
            self.kernels[:] = kept
        for kernel in closing:
            kernel.is_read = bool(readers.get(kernel.result))

    def round(self, loop: Recurrence) -> tuple[Kernel, ...]:
        """Return the kernels on a cycle of a loop, in order."""
        begun, reached = set(loop.states.values()), set[Source]()
        for kernel in self.kernels:
            if kernel in begun or any(
                operand.view.source in reached for operand in kernel.operands
            ):
                reached.update(kernel.results)
        ends, on_cycle = set(loop.behind.values()), list[Kernel]()
        read = set[Source]()
        for kernel in reversed(self.kernels):
            if kernel in ends or any(
                result in read and result in reached for result in kernel.results
            ):
                on_cycle.append(kernel)
                if kernel not in begun:
                    read.update(operand.view.source for operand in kernel.operands)
        return tuple(reversed(on_cycle))


class OutOfStepError(ProgramError):
    """A kernel in a loop does not take one step after the other."""


def check_loops(model: Model) -> None:
    """Refuse a kernel in a loop if an operand or a result is not in the order of the steps."""
    for loop in model.loops.values():
        around = model.round(loop)
        for kernel in around:
            if not _is_by_steps(kernel, around, loop):
                raise OutOfStepError(
                    f"{kernel.name} ({kernel.family}) is in a loop of {loop.steps} steps, and "
                    "does not take them one after the other: expected calls that proceed step "
                    "by step",
                    file=loop.file,
                    line=loop.line,
                )


def _is_by_steps(kernel: Kernel, around: tuple[Kernel, ...], loop: Recurrence) -> bool:
    made = {result for each in around for result in each.results}
    for operand in kernel.operands:
        if operand.view.source not in made or kernel in loop.states.values():
            continue
        wanted = operand.pulled().layout  # a kernel with an opaque result was refused before
        if not is_convertible(operand.view, wanted) or not is_by_steps(wanted, loop.steps):
            return False
    if kernel in loop.behind.values():
        return True
    return all(
        isinstance(each, Computed) and is_by_steps(each.layout, loop.steps)
        for each in kernel.results
    )


def wire(program: Program, model: Model, spilled: Collection[Operand] = ()) -> Wired:
    """Wire the kernels of ``model`` in the open ``program``; return their operators.

    Operands in ``spilled`` are loaded from off-chip memory each time they are read. If such an
    operand is a kernel's result, it is stored there first, even if a converter were enough.
    """
    wired = Wired()
    joints = _Joints(program, wired, frozenset(spilled))
    names = {kernel.name for kernel in model.kernels}
    for kernel in model.kernels:
        with program.names.numbering(names):
            inputs = [joints.joined(kernel, index) for index in range(len(kernel.operands))]
        first = len(program.nodes)
        with program.names.numbering(names - {kernel.name}):
            outputs = kernel.wire(inputs)
        wired.kernels[kernel] = range(first, len(program.nodes))
        kernel.configure(program, outputs)
        joints.streams.update(zip(kernel.results, outputs, strict=True))
    _deepen_forks(program)
    return wired


class _Joints:
    """Joins the results of kernels to their readers; ``streams`` has the results so far."""

    def __init__(self, program: Program, wired: Wired, spilled: Collection[Operand]) -> None:
        self.streams: Final[dict[Source, Streams]] = {}
        self._program: Final = program
        self._wired: Final = wired
        self._spilled: Final = spilled
        self._converted: Final[dict[tuple[Source, Layout, bool], tuple[Stream, range]]] = {}

    def joined(self, kernel: Kernel, index: int) -> Streams:
        operand = kernel.operands[index]
        nodes = self._program.nodes
        first = len(nodes)
        result = self._joined(kernel, index, operand)
        made = self._wired.operands[operand] = range(first, len(nodes))
        self._wired.in_front.setdefault(operand, made)
        return result

    def _joined(self, kernel: Kernel, index: int, operand: Operand) -> Streams:
        view, layout = operand.view, operand.layout
        match view.source:
            case Opaque():
                return self.streams[view.source]
            case Stored():
                resident = operand.resident and operand not in self._spilled
                return load(_load_name(kernel, index), replace(operand, resident=resident))
            case Computed():
                assert layout is not None
                pulled = operand.pulled()
                stream = self._as_pulled(view.source, operand, pulled.layout)
                if not operand.rearranges:
                    stream = rearranged(stream, pulled.places, broadcasts=operand.broadcasts)
                return redimensioned(stream, (1, *layout.trips))
            case _:
                raise TypeError(f"{view.source} of {kernel.name}, operand {index}")

    def _as_pulled(self, source: Computed, operand: Operand, wanted: Layout) -> Stream:
        """Return a source in another layout; readers of the same layout share a converter.

        Readers do not share a converter that reads tiles again: it would repeat the tiles in the
        channels of waiting readers, but the buffer of a private converter keeps each tile once.
        """
        through = operand in self._spilled or not is_convertible(operand.view, wanted)
        stream = self.streams[source]
        assert isinstance(stream, Stream)
        if wanted.same_order(source.layout) and not through:
            return stream
        key = source, wanted.canonical(), through
        if key in self._converted:
            result, self._wired.in_front[operand] = self._converted[key]
            return result
        nodes = self._program.nodes
        first = len(nodes)
        if through:
            result = spill(stream, source.layout, wanted)
        else:
            result = Convert(wanted)(stream.laid_out(source.layout))
        self._wired.in_front[operand] = range(first, len(nodes))
        if not wanted.rereads:
            self._converted[key] = result, self._wired.in_front[operand]
        return result


def _load_name(kernel: Kernel, index: int) -> str:
    names = [operand.view.source.name for operand in kernel.operands]
    name = f"{kernel.name}_load_{names[index]}"
    return name if names.count(names[index]) == 1 else f"{name}_{index}"


def _deepen_forks(program: Program) -> None:
    """Give channels behind a fork room for all elements, so that no branch blocks another.

    If two branches meet again, the shorter branch waits for the first result of the longer one, and
    must not block the fork. ``size`` finds the depths that the channels need.
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
            count = number_of(program, source.type.count)
            if count is not None:
                program.deepen(f"{node.name}.{index}", max(1, count))


def spill(stream: Stream, written: Layout, read: Layout) -> Stream:
    """Return the tiles of ``stream`` in another order, through off-chip memory.

    Tiles that are not rectangles in memory, such as heads of several tokens, are cut first.
    """
    before, behind = _in_rectangles(written), _in_rectangles(read)
    if before != written:
        stream = Convert(before)(stream.laid_out(written))
    stream = through_memory(stream, before, behind)
    return stream if behind == read else Convert(read)(stream)


def _in_rectangles(layout: Layout) -> Layout:
    """Return the same tiles, cut into smaller tiles until each is a rectangle in memory."""
    smaller, last = layout, len(layout.tile) - 1
    for dim in range(last):
        if is_matrix(smaller):
            return smaller
        smaller = _cut(smaller, dim, 1)
    if last < 0 or is_matrix(smaller):
        return smaller
    along = [loop.step for loop in layout.loops if loop.dim == last and loop.trips > 1]
    return _cut(
        smaller, last, gcd(layout.shape[last], layout.tile[last], layout.start[last], *along)
    )


def _cut(layout: Layout, dim: int, size: int) -> Layout:
    """Return a layout with tiles of ``size`` along one dimension."""
    parts = layout.tile[dim] // size
    if parts == 1:
        return layout
    tile = (*layout.tile[:dim], size, *layout.tile[dim + 1 :])
    loops = (*layout.loops, Loop(parts, size, dim))
    return Layout.of_loops(layout.shape, tile, layout.start, loops)


@dataclass(frozen=True, eq=False)
class Wired:
    """The operators of each kernel and operand, as indices of ``Program.nodes``.

    Attributes:
        operands: the operators wired for each operand; a shared converter is in one range only.
        in_front: the operators in front of each operand, including a shared converter.
    """

    kernels: dict[Kernel, range] = field(default_factory=dict)
    operands: dict[Operand, range] = field(default_factory=dict)
    in_front: dict[Operand, range] = field(default_factory=dict)


def load(name: str, operand: Operand) -> Stream:
    """Return a stored operand as its kernel reads it, ``[1, *layout.trips]`` of tiles."""
    source, layout = operand.view.source, operand.layout
    assert isinstance(source, Stored)
    assert layout is not None
    pulled = operand.pulled()
    once = _loaded(operand, pulled.layout)
    stream = loaded(source.tensor, once, name=name)
    if once != pulled.layout:
        stream = Convert(pulled.layout)(stream)
    if not operand.rearranges:
        stream = rearranged(stream, pulled.places, broadcasts=operand.broadcasts)
    return redimensioned(stream, (1, *layout.trips))


def times_loaded(operand: Operand, *, spilled: bool) -> int:
    """Return how often the tiles of a stored operand are loaded."""
    layout = operand.pulled().layout
    loaded = _loaded(replace(operand, resident=operand.resident and not spilled), layout)
    return loaded.count // _once(layout).count


def _loaded(operand: Operand, layout: Layout) -> Layout:
    """Return the layout in which an operand is loaded if its kernel reads ``layout``."""
    return _once(layout) if operand.resident else layout.nested(unrepeated(layout.loops))


def _once(layout: Layout) -> Layout:
    """Return the layout without the loops that read tiles again."""
    return layout.nested([loop for loop in layout.loops if loop.dim is not None])

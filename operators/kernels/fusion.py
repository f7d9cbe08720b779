"""Fusion: which kernels are merged, and which edges stay on chip or go through off-chip memory.

Chains of calls on the same tiles are merged into one kernel. Kernels stay on chip in groups that
fit with their buffers. The sizes of buffers come from the wired operators.

Source: StreamTensor, arXiv 2509.13694v2, section 4.2, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric import CapacityError, Program
from fabric.extend import refuse
from operators.bufferize import Bufferize
from operators.functions.steps import Chain, Step, renumbered
from operators.kernels.kernel import Kernel, Operand, may_be_spilled
from operators.kernels.model import Model, wire
from operators.kernels.row_local import RowLocal, same_operand
from operators.kernels.schedule import number_of
from operators.kernels.tensors import Computed, Source, Stored


@dataclass(frozen=True)
class Buffer:
    """The buffers in front of an operand.

    Attributes:
        shared_by: equal for operands that can share one converter.
        size_bytes: the bytes of all buffers.
        spilled_bytes: the bytes that remain if the operand is loaded again for every reading: a
            tile that is read several times in a row is still kept.
        spillable: the operand may come from off-chip memory.
    """

    shared_by: object
    size_bytes: int
    spilled_bytes: int = 0
    spillable: bool = True

    @property
    def kept_bytes(self) -> int:
        """The bytes for keeping tiles on chip instead of loading them again."""
        return self.size_bytes - self.spilled_bytes


@dataclass(frozen=True)
class Needs:
    """The on-chip bytes of kernels: their buffers, as counted by the ``Bufferize`` operators.

    A kernel has buffers between its own operators, and an operand has buffers in its converter.
    Channels do not count, as their depths follow from the fusion. Single tiles in operators do not
    count either.
    """

    kernels: Mapping[Kernel, int]
    operands: Mapping[Operand, Buffer]


class _Group:
    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.shared: set[object] = set()
        self.taken_bytes = 0


@dataclass(frozen=True, eq=False)
class Fusion:
    """Groups of kernels that are on chip together, in topological order.

    Operands in ``spilled`` are loaded from off-chip memory each time they are read.
    """

    groups: tuple[tuple[Kernel, ...], ...]
    spilled: frozenset[Operand]


def fused(model: Model, needs: Needs, on_chip_bytes: int) -> Fusion:
    """Put the kernels of ``model`` into groups that fit on chip with their buffers.

    In one pass, each kernel joins the last of the groups that it reads from, if that group has room
    for its buffers and converters. Otherwise the kernel begins the next group. A kernel that reads
    from no group joins the first group with room. Results of another group come through off-chip
    memory. If there is not enough room to keep stored tensors, the largest are loaded again for
    each reading.

    Operands that cannot go through memory stay on chip and count in the group that reads them:
    routed rows, and tiles that do not form a matrix in memory.
    """
    groups: list[_Group] = []
    group_of: dict[Source, int] = {}
    spilled: set[Operand] = set()
    for kernel in model.kernels:
        read = {each: group_of.get(each.view.source) for each in kernel.operands}
        stored = [each for each, group in read.items() if group is None]
        own = needs.kernels[kernel] + sum(needs.operands[each].spilled_bytes for each in stored)
        alone = own + _converters(read, needs, len(groups), _Group())
        if alone > on_chip_bytes:
            refuse(
                f"{kernel.name} ({kernel.family}) needs buffers of {alone:,} bytes: "
                f"expected at most {on_chip_bytes:,}, the schedule's on_chip_bytes",
                CapacityError,
            )
        dropped = _dropped(stored, needs, on_chip_bytes - alone)
        spilled.update(dropped)
        own += sum(needs.operands[each].kept_bytes for each in stored if each not in dropped)
        chosen = _chosen(groups, read, needs, own, on_chip_bytes)
        if chosen == len(groups):
            groups.append(_Group())
        group = groups[chosen]
        group.taken_bytes += own + _converters(read, needs, chosen, group)
        group.kernels.append(kernel)
        for operand, source_group in read.items():
            if source_group is None:
                continue
            if source_group == chosen or not needs.operands[operand].spillable:
                group.shared.add(needs.operands[operand].shared_by)
            else:
                spilled.add(operand)
        group_of.update(dict.fromkeys(kernel.results, chosen))
    return Fusion(tuple(tuple(each.kernels) for each in groups), frozenset(spilled))


def _chosen(
    groups: Sequence[_Group],
    read: Mapping[Operand, int | None],
    needs: Needs,
    own_bytes: int,
    on_chip_bytes: int,
) -> int:
    """Return the number of a kernel's group, or the next number if that group has no room."""
    fits = [
        index
        for index, group in enumerate(groups)
        if group.taken_bytes + own_bytes + _converters(read, needs, index, group) <= on_chip_bytes
    ]
    from_groups = [group for group in read.values() if group is not None]
    wanted = max(from_groups) if from_groups else min(fits, default=len(groups))
    return wanted if wanted in fits else len(groups)


def _converters(read: Mapping[Operand, int | None], needs: Needs, index: int, group: _Group) -> int:
    """Return the bytes of the converters that a kernel would add to a group."""
    kept = [
        needs.operands[operand]
        for operand, source_group in read.items()
        if source_group == index
        or (source_group is not None and not needs.operands[operand].spillable)
    ]
    wanted = {each.shared_by: each.size_bytes for each in kept}
    return sum(size for key, size in wanted.items() if key not in group.shared)


def _dropped(stored: Sequence[Operand], needs: Needs, room_bytes: int) -> list[Operand]:
    """Return the stored operands that cannot be kept on chip, the largest first."""
    kept = sorted(stored, key=lambda each: needs.operands[each].kept_bytes)
    dropped = []
    while sum(needs.operands[operand].kept_bytes for operand in kept) > room_bytes:
        dropped.append(kept.pop())
    return dropped


def needs_of(model: Model) -> Needs:
    with Program("all on chip") as program:
        wired = wire(program, model)
    stored = [each for each in wired.operands if isinstance(each.view.source, Stored)]
    with Program("nothing kept") as spilling:
        spilled = wire(spilling, model, stored)
    left = {each: buffer_bytes(spilling, spilled.operands[each]) for each in stored}
    in_loops = {
        operand
        for loop in model.loops.values()
        for kernel in model.round(loop)
        for operand in kernel.operands
        if not isinstance(operand.view.source, Stored)
    }
    return Needs(
        {kernel: buffer_bytes(program, nodes) for kernel, nodes in wired.kernels.items()},
        {
            operand: Buffer(
                nodes,
                buffer_bytes(program, nodes),
                left.get(operand, 0),
                operand not in in_loops and may_be_spilled(operand),
            )
            for operand, nodes in wired.in_front.items()
        },
    )


def buffer_bytes(program: Program, operators: range) -> int:
    """Return the bytes of the buffers among ``operators``, as ``check`` counts them.

    Every buffer counts twice, since one is filled while the other is read. Sizes that depend on
    unbound symbols are left out.
    """
    nodes = [program.nodes[place] for place in operators]
    return sum(
        number_of(program, node.operator.costs(node.input_types, node.output_types).on_chip_bytes)
        or 0
        for node in nodes
        if isinstance(node.operator, Bufferize)
    )


def merge_chains(model: Model) -> None:
    """Merge each kernel of steps into its only reader, if both have the same tiles.

    For example, a norm written as powers, means and products becomes one unit. So do the halves of
    a rotary embedding, which both read one source.
    """
    for kernel in reversed(list(model.kernels)):
        if isinstance(kernel, RowLocal) and kernel in model.kernels:
            _take_in(model, kernel)


def _take_in(model: Model, kernel: RowLocal) -> None:
    """Merge into ``kernel`` the kernels that only it reads, and then their producers."""
    while (producer := _only_read_by(model, kernel)) is not None:
        merged = _merged(producer, kernel)
        model.kernels[model.kernels.index(kernel)] = merged
        model.kernels.remove(producer)
        kernel = merged


def _only_read_by(model: Model, kernel: RowLocal) -> RowLocal | None:
    """Return the last kernel with a result that only ``kernel`` reads, tile by tile."""
    for other in reversed(model.kernels[: model.kernels.index(kernel)]):
        if not isinstance(other, RowLocal):
            continue
        (result,) = other.results
        reading = [operand for operand in kernel.operands if operand.view.source is result]
        readers = model.readers().get(result)
        if reading and len(reading) == readers and all(map(_as_it_comes, reading)):
            return other
    return None


def _as_it_comes(operand: Operand) -> bool:
    """Whether tiles are read in the order of their source, each once."""
    source, layout = operand.view.source, operand.layout
    assert isinstance(source, Computed)
    assert layout is not None
    pulled = operand.view.pull(layout)
    return (
        pulled is not None
        and pulled.layout.shape == source.shape
        and pulled.layout.same_order(source.layout)
    )


def _merged(first: RowLocal, second: RowLocal) -> RowLocal:
    (passed_on,) = first.results
    operands: list[Operand] = []
    # The reader's operands come first: they decide the order of the merged kernel's tiles.
    for operand in (*second.operands, *first.operands):
        if operand.view.source is not passed_on and _place(operand, operands) is None:
            operands.append(operand)
    steps: list[Step] = []
    for kernel in (first, second):
        # An operand of the second kernel without a place is the result of the first kernel's steps.
        passed = len(operands) + len(steps) - 1
        places = [_place(operand, operands) for operand in kernel.operands]
        numbers = [passed if place is None else place for place in places]
        for step in kernel.chain.steps:
            steps.append(renumbered(step, numbers))
            numbers.append(len(operands) + len(steps) - 1)
    (result,) = second.results
    assert isinstance(result, Computed)
    return RowLocal(second.name, Chain(len(operands), tuple(steps)), operands, result)


def _place(operand: Operand, operands: list[Operand]) -> int | None:
    same = (place for place, other in enumerate(operands) if same_operand(operand, other))
    return next(same, None)

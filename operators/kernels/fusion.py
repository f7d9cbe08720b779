"""Fusion: which kernels hand their tensors on within the chip, and which through off-chip memory.

Source: StreamTensor, arXiv 2509.13694v2, section 4.2, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric import CapacityError
from fabric.extend import refuse
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model
from operators.kernels.tensors import Source

__all__ = ["Buffer", "Fusion", "Needs", "fused"]


@dataclass(frozen=True)
class Buffer:
    """What buffers in front of an operand take.

    Attributes:
        shared_by: equal for operands for which one converter does.
        size_bytes: of all its buffers.
        spilled_bytes: what is left of them where it comes from off-chip memory each time: of a
            stored tensor a tile that is read often at once.
        spillable: it may come from there.
    """

    shared_by: object
    size_bytes: int
    spilled_bytes: int = 0
    spillable: bool = True


@dataclass(frozen=True)
class Needs:
    """What kernels take on chip: their buffers, as the operators ``Bufferize`` count them.

    Channels do not count: how deep they have to be is found once it is known what is fused. Nor do
    the single tiles that operators hold.

    Attributes:
        kernels: what a kernel buffers between its own operators, in bytes.
        operands: the converter behind a load or behind another kernel.
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
    """Kernels that are on chip together, group by group.

    Attributes:
        groups: in an order in which each finds what it reads.
        spilled: operands that come from off-chip memory each time they are read.
    """

    groups: tuple[tuple[Kernel, ...], ...]
    spilled: frozenset[Operand]


def fused(model: Model, needs: Needs, on_chip_bytes: int) -> Fusion:
    """Put the kernels of ``model`` into groups whose buffers fit on chip.

    One pass over the kernels in their order. A kernel joins the last of the groups that it reads
    from, if that has room for its buffers and for the converters between the two; else it begins
    the next group. One that reads from none joins the first that has room. What comes from another
    group comes through off-chip memory. What a kernel keeps of tensors that are in that memory
    anyway is read again from there where there is no room for it, the largest first.

    What cannot go through memory stays on chip, and counts in the group that reads it: rows that
    data give to groups, and tiles that are none of a matrix in memory.

    Raises:
        CapacityError: a kernel takes more than there is, alone.
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
        own += sum(_more(needs.operands[each]) for each in stored if each not in dropped)
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
    """Return the group that a kernel joins: the last one that it reads from, else the first one.

    Where that has no room for ``own_bytes`` and the converters, it is the number of the next group.
    """
    fits = [
        index
        for index, group in enumerate(groups)
        if group.taken_bytes + own_bytes + _converters(read, needs, index, group) <= on_chip_bytes
    ]
    from_groups = [group for group in read.values() if group is not None]
    wanted = max(from_groups) if from_groups else min(fits, default=len(groups))
    return wanted if wanted in fits else len(groups)


def _converters(read: Mapping[Operand, int | None], needs: Needs, index: int, group: _Group) -> int:
    """Return the bytes of converters that a group still lacks for what stays on chip."""
    kept = [
        needs.operands[operand]
        for operand, source_group in read.items()
        if source_group == index
        or (source_group is not None and not needs.operands[operand].spillable)
    ]
    wanted = {each.shared_by: each.size_bytes for each in kept}
    return sum(size for key, size in wanted.items() if key not in group.shared)


def _dropped(stored: Sequence[Operand], needs: Needs, room_bytes: int) -> list[Operand]:
    """Return the operands in off-chip memory for which there is no room to be kept on chip."""
    kept = sorted(stored, key=lambda each: _more(needs.operands[each]))
    dropped = []
    while sum(_more(needs.operands[each]) for each in kept) > room_bytes:
        dropped.append(kept.pop())
    return dropped


def _more(buffer: Buffer) -> int:
    """Return the bytes that it takes to keep what could be read again."""
    return buffer.size_bytes - buffer.spilled_bytes

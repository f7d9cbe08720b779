"""Fusion: which kernels hand their tensors on within the chip, and which through off-chip memory.

Source: StreamTensor, arXiv 2509.13694v2, section 4.2, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric import CapacityError, refuse
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model
from operators.kernels.tensors import Opaque, Source

__all__ = ["Buffer", "Fusion", "Needs", "fused"]


@dataclass(frozen=True)
class Buffer:
    """What buffers in front of an operand take.

    Attributes:
        shared_by: equal for operands for which one converter does.
        size_bytes: of all its buffers.
    """

    shared_by: object
    size_bytes: int


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


@dataclass(eq=False)
class _Group:
    kernels: list[Kernel] = field(default_factory=list)
    shared: set[object] = field(default_factory=set)
    taken_bytes: int = 0


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

    Rows that data give to groups have no place in memory: they stay on chip, in channels.

    Raises:
        CapacityError: a kernel takes more than there is, alone.
    """
    groups: list[_Group] = []
    group_of: dict[Source, int] = {}
    spilled: set[Operand] = set()
    for kernel in model.kernels:
        own = needs.kernels[kernel]
        if own > on_chip_bytes:
            refuse(
                f"{kernel.name} ({kernel.family}) buffers {own:,} bytes between its operators: "
                f"expected at most {on_chip_bytes:,}, the schedule's on_chip_bytes",
                CapacityError,
            )
        read = {each: group_of.get(each.view.source) for each in kernel.operands}
        stored = [each for each, group in read.items() if group is None]
        kept, dropped = _kept(stored, needs, on_chip_bytes - own)
        spilled.update(dropped)
        own += sum(needs.operands[each].size_bytes for each in kept)
        fits = [
            index
            for index, group in enumerate(groups)
            if group.taken_bytes + own + _converters(read, needs, index, group) <= on_chip_bytes
        ]
        from_groups = [group for group in read.values() if group is not None]
        wanted = max(from_groups) if from_groups else min(fits, default=len(groups))
        chosen = wanted if wanted in fits else len(groups)
        if chosen == len(groups):
            groups.append(_Group())
        group = groups[chosen]
        group.taken_bytes += own + _converters(read, needs, chosen, group)
        group.kernels.append(kernel)
        for operand, source_group in read.items():
            if source_group == chosen:
                group.shared.add(needs.operands[operand].shared_by)
            elif source_group is not None and not isinstance(operand.view.source, Opaque):
                spilled.add(operand)
        group_of.update(dict.fromkeys(kernel.results, chosen))
    return Fusion(tuple(tuple(each.kernels) for each in groups), frozenset(spilled))


def _converters(read: Mapping[Operand, int | None], needs: Needs, index: int, group: _Group) -> int:
    """Return the bytes of converters that a group still lacks for operands that come from it."""
    wanted = {
        needs.operands[operand].shared_by: needs.operands[operand].size_bytes
        for operand, source_group in read.items()
        if source_group == index
    }
    return sum(size for key, size in wanted.items() if key not in group.shared)


def _kept(
    stored: list[Operand], needs: Needs, room_bytes: int
) -> tuple[list[Operand], list[Operand]]:
    """Return the operands in off-chip memory that are kept to be read again, and the others."""
    kept = sorted(stored, key=lambda each: needs.operands[each].size_bytes)
    dropped = []
    while sum(needs.operands[each].size_bytes for each in kept) > room_bytes:
        dropped.append(kept.pop())
    return kept, dropped

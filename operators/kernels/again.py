"""Tensors that pass off-chip memory more than once, and why: a line for each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabric import Program, TileType
from operators.kernels.edges import joint_of
from operators.kernels.fusion import Fusion
from operators.kernels.kernel import Kernel
from operators.kernels.loading import times_loaded
from operators.kernels.model import Model
from operators.kernels.product import Product
from operators.kernels.sizes import number_of
from operators.kernels.tensors import Source, Stored
from operators.kernels.wired import Wired
from operators.random_off_chip_load import RandomOffChipLoad
from operators.tiles.tensor import Tensor

__all__ = ["Again", "moved_again"]


@dataclass(frozen=True)
class Again:
    """What moves once more than it has to.

    Attributes:
        tensor: its name.
        size_bytes: beyond those of moving it once; where it has to stay on chip, all of them.
        why: in words.
    """

    tensor: str
    size_bytes: int
    why: str

    def __str__(self) -> str:
        """The tensor, the bytes and the reason."""
        return f"{self.tensor} (bytes: {self.size_bytes:,}): {self.why}"


def moved_again(program: Program, model: Model, wired: Wired, fusion: Fusion) -> list[Again]:
    """Return what the operators of ``program`` move beyond each tensor once.

    A tensor in memory is to be read once, however many read it, and what a kernel gives to another
    is not to be there at all. Tiles that are named during a run count where they are more than
    their whole tensor. What hangs on sizes that the program does not bind is left out.
    """
    found = [*_read(program, model, wired, fusion), *_through(program, wired, fusion)]
    found += _named(program, model, wired)
    return sorted((each for each in found if each.size_bytes), key=lambda each: -each.size_bytes)


def _read(program: Program, model: Model, wired: Wired, fusion: Fusion) -> Iterator[Again]:
    """Yield the tensors in memory that kernels read as operands."""
    readings: dict[Source, list[tuple[str, int]]] = defaultdict(list)
    for kernel in model.kernels:
        for operand in kernel.operands:
            source = operand.view.source
            if not isinstance(source, Stored) or operand.layout is None:
                continue
            spilled = operand in fusion.spilled
            times = times_loaded(operand, spilled=spilled)
            size_bytes = _bytes(program, wired.operands[operand])
            readings[source.base or source].append((kernel.name, size_bytes // times))
            if times > 1:
                why = f"read {times} times by {kernel.name}, {_reason(kernel, spilled=spilled)}"
                yield Again(source.name, size_bytes - size_bytes // times, why)
    for source, each in readings.items():
        yield _side_by_side(source, each)


def _reason(kernel: Kernel, *, spilled: bool) -> str:
    """Return why a kernel reads tiles again."""
    if spilled:
        return "as on_chip_bytes leaves no room to keep it"
    assert isinstance(kernel, Product)
    return f"as other tiles stay in the order {kernel.nest.order}"


def _side_by_side(source: Source, readings: Sequence[tuple[str, int]]) -> Again:
    """Return what readings of one tensor, each of which is loaded by itself, are beyond its size.

    A reading may have more than the tensor: what is repeated for each of its neighbours.
    """
    sizes = [size_bytes for _, size_bytes in readings]
    again = sum(sizes) - max(_whole_bytes(source.shape, source.dtype), *sizes, 0)
    names = ", ".join(dict.fromkeys(name for name, _ in readings))
    return Again(source.name, max(0, again), f"loaded {len(sizes)} times, by itself for {names}")


def _through(program: Program, wired: Wired, fusion: Fusion) -> Iterator[Again]:
    """Yield what kernels give to kernels through memory: it is written, and read."""
    for operand, places in wired.operands.items():
        source = operand.view.source
        if isinstance(source, Stored) or operand.layout is None:
            continue
        size_bytes = _bytes(program, places)
        if operand in fusion.spilled:
            why = "through memory, as on_chip_bytes leaves no room for it"
        elif size_bytes:
            wanted = joint_of(operand).pulled.layout
            why = f"through memory, as no converter makes {wanted} of its tiles"
        else:
            continue
        yield Again(source.name, size_bytes, why)


def _named(program: Program, model: Model, wired: Wired) -> Iterator[Again]:
    """Yield the tiles that kernels name themselves: rows of a table, keys that queries see."""
    for kernel in model.kernels:
        for place in wired.kernels[kernel]:
            load = program.nodes[place].operator
            if isinstance(load, RandomOffChipLoad):
                size_bytes = _bytes(program, [place])
                (stream,) = program.nodes[place].output_types
                assert isinstance(stream.value, TileType)
                whole = _whole_bytes(Tensor.of(load.tensor).shape, stream.value.dtype)
                why = f"tiles of which {kernel.name} names some more than once"
                yield Again(program.nodes[place].name, max(0, size_bytes - whole), why)


def _whole_bytes(shape: Sequence[int], dtype: np.dtype) -> int:
    """Return what a tensor takes in memory."""
    return TileType(math.prod(shape[:-1]), math.prod(shape[-1:]), dtype).size_bytes


def _bytes(program: Program, places: Iterable[int]) -> int:
    """Return what operators move."""
    nodes = [program.nodes[place] for place in places]
    costs = [node.operator.costs(node.input_types, node.output_types) for node in nodes]
    return sum(number_of(program, each.load_bytes + each.store_bytes) or 0 for each in costs)

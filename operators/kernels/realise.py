"""Programs from a model and a schedule, and the fusion in their reports."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from fabric import ConfigurationError, Program, Stream, TileType
from fabric.extend import BufferType, ComputeOperator, refuse
from operators.kernels.fusion import Fusion, buffer_bytes, fused, needs_of
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model, Wired, times_loaded, wire
from operators.kernels.product import Product
from operators.kernels.schedule import Schedule, number_of
from operators.kernels.tensors import Source, Stored
from operators.off_chip_load import RandomOffChipLoad
from operators.streams.reading import tile_of
from operators.tiles.tensor import Tensor


def summarise(program: Program, model: Model, wired: Wired, fusion: Fusion) -> None:
    """Add the fusion of kernels and its bytes to the report of ``program``.

    Intermediate tensors are the results of kernels that kernels read. Unfused bytes count each
    intermediate tensor once, as a whole. Fused bytes count the buffers of converters, twice each,
    and the channels between kernels at their depths. Edges through off-chip memory count as
    traffic. Tensors that move more than once are listed with a reason. Sizes that depend on unbound
    symbols are left out.
    """
    summary = _Summary(program, model, wired, fusion)
    program.extra["kernels"] = lambda: len(model.kernels)
    program.extra["kernel_groups"] = lambda: len(fusion.groups)
    program.extra["largest_group_buffer_bytes"] = summary.largest_group_bytes
    program.extra["edges_on_chip"] = lambda: len(summary.edges) - len(summary.through)
    program.extra["edges_through_memory"] = lambda: len(summary.through)
    program.extra["spilled_traffic_bytes"] = summary.spilled_bytes
    program.extra["intermediate_unfused_bytes"] = summary.unfused_bytes
    program.extra["intermediate_buffer_bytes"] = summary.converter_bytes
    program.extra["intermediate_channel_bytes"] = summary.channel_bytes
    program.extra["intermediate_fused_percent"] = summary.fused_percent
    again = partial(moved_again, program, model, wired, fusion)
    program.extra["moved_again_bytes"] = lambda: sum(each.size_bytes for each in again())
    program.extra["moved_again"] = lambda: [str(each) for each in again()]


class _Summary:
    """The edges of a model in its program; those in ``through`` go through off-chip memory."""

    def __init__(self, program: Program, model: Model, wired: Wired, fusion: Fusion) -> None:
        self._program: Final = program
        self._wired: Final = wired
        self._fusion: Final = fusion
        self.edges: Final = model.edges()
        last = [kernel for kernel in model.kernels if not kernel.results]
        self._outputs: Final = {*last, *(operand for kernel in last for operand in kernel.operands)}
        self._between: Final = [edge for edge in self.edges if edge not in self._outputs]
        self.through: Final = [edge for edge in self.edges if self._stores(wired.in_front[edge])]
        parts: list[tuple[Kernel | Operand, range]] = [
            *wired.operands.items(),
            *wired.kernels.items(),
        ]
        self._part: Final = {place: part for part, operators in parts for place in operators}

    def _stores(self, operators: range) -> bool:
        return any(self._program.nodes[place].operator.off_chip == "write" for place in operators)

    def largest_group_bytes(self) -> int:
        return max(map(self._group_bytes, self._fusion.groups), default=0)

    def _group_bytes(self, group: tuple[Kernel, ...]) -> int:
        parts = [self._wired.kernels[kernel] for kernel in group]
        parts += [self._wired.operands[operand] for kernel in group for operand in kernel.operands]
        return sum(buffer_bytes(self._program, operators) for operators in parts)

    def unfused_bytes(self) -> int:
        sources = {operand.view.source for operand in self._between}
        return sum(_tensor_bytes(source.shape, source.dtype) for source in sources)

    def converter_bytes(self) -> int:
        converters = [self._wired.operands[operand] for operand in self._between]
        return sum(buffer_bytes(self._program, operators) for operators in converters)

    def channel_bytes(self) -> int:
        places = {node.name: place for place, node in enumerate(self._program.nodes)}
        forks: Counter[str] = Counter()
        total = 0
        for place, node in enumerate(self._program.nodes):
            for index, stream in enumerate(node.inputs):
                source = stream.resolve()
                if source.node is None:
                    continue
                name = source.node.name
                writer, reader = self._part[places[name]], self._part[place]
                is_inside = writer is reader and isinstance(writer, Kernel)
                is_load = isinstance(writer, Operand) and isinstance(writer.view.source, Stored)
                if is_inside or is_load or reader in self._outputs:
                    continue
                fork = f"broadcast_{name}_{source.port}.0"
                forks[fork] += 1
                total += self._bytes_of(f"{node.name}.{index}", source)
                if forks[fork] == 2:
                    total += self._bytes_of(fork, source)
        return total

    def _bytes_of(self, channel: str, stream: Stream) -> int:
        """Return the bytes of a channel; 0 for references to buffers, which count as buffers."""
        if isinstance(stream.value, BufferType):
            return 0
        size_bytes = number_of(self._program, stream.value.size_bytes) or 0
        return self._program.depth_of(channel) * size_bytes

    def fused_percent(self) -> float | None:
        unfused = self.unfused_bytes()
        fused = self.converter_bytes() + self.channel_bytes()
        return round(100 * fused / unfused, 1) if unfused else None

    def spilled_bytes(self) -> int:
        return sum(_bytes(self._program, self._wired.operands[operand]) for operand in self.through)


@dataclass(frozen=True)
class Again:
    """A tensor that moves more than once.

    Attributes:
        size_bytes: the traffic beyond moving it once; all traffic of an intermediate tensor.
    """

    tensor: str
    size_bytes: int
    why: str

    def __str__(self) -> str:
        return f"{self.tensor} (bytes: {self.size_bytes:,}): {self.why}"


def moved_again(program: Program, model: Model, wired: Wired, fusion: Fusion) -> list[Again]:
    """Return the traffic of ``program`` beyond moving each tensor once.

    All readers together should read a stored tensor once, and an intermediate tensor should not be
    in memory. Tiles that are loaded by addresses count as far as they exceed their tensor's
    size. Sizes that depend on unbound symbols are left out.
    """
    moves = [*_read(program, model, wired, fusion), *_through(program, wired, fusion)]
    moves += _named(program, model, wired)
    return sorted((move for move in moves if move.size_bytes), key=lambda move: -move.size_bytes)


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
    if spilled:
        return "as on_chip_bytes leaves no room to keep it"
    assert isinstance(kernel, Product)
    return f"as the order {kernel.nest.order} keeps other tiles on chip"


def _side_by_side(source: Source, readings: Sequence[tuple[str, int]]) -> Again:
    """Return the traffic of separate readings of one tensor beyond its size.

    A single reading may exceed the tensor if it loads tiles again.
    """
    sizes = [size_bytes for _, size_bytes in readings]
    again = sum(sizes) - max(_tensor_bytes(source.shape, source.dtype), *sizes, 0)
    names = ", ".join(dict.fromkeys(name for name, _ in readings))
    return Again(source.name, max(0, again), f"loaded {len(sizes)} times, separately for {names}")


def _through(program: Program, wired: Wired, fusion: Fusion) -> Iterator[Again]:
    """Yield the results of kernels that are written to memory and read again."""
    for operand, places in wired.operands.items():
        source = operand.view.source
        if isinstance(source, Stored) or operand.layout is None:
            continue
        size_bytes = _bytes(program, places)
        if operand in fusion.spilled:
            why = "through memory, as on_chip_bytes leaves no room for it"
        elif size_bytes:
            wanted = operand.pulled().layout
            why = f"through memory, as no converter makes {wanted} of its tiles"
        else:
            continue
        yield Again(source.name, size_bytes, why)


def _named(program: Program, model: Model, wired: Wired) -> Iterator[Again]:
    """Yield the tiles that are loaded by addresses: rows of a table, keys that queries see."""
    for kernel in model.kernels:
        for place in wired.kernels[kernel]:
            load = program.nodes[place].operator
            if isinstance(load, RandomOffChipLoad):
                size_bytes = _bytes(program, [place])
                (stream,) = program.nodes[place].output_types
                whole = _tensor_bytes(Tensor.of(load.tensor).shape, tile_of(stream).dtype)
                why = f"{kernel.name} reads some of its tiles more than once"
                yield Again(program.nodes[place].name, max(0, size_bytes - whole), why)


def _tensor_bytes(shape: Sequence[int], dtype: np.dtype) -> int:
    return TileType(math.prod(shape[:-1]), math.prod(shape[-1:]), dtype).size_bytes


def _bytes(program: Program, places: Iterable[int]) -> int:
    nodes = [program.nodes[place] for place in places]
    costs = [node.operator.costs(node.input_types, node.output_types) for node in nodes]
    return sum(number_of(program, cost.load_bytes + cost.store_bytes) or 0 for cost in costs)


def realised(name: str, model: Model, schedule: Schedule) -> Program:
    """Return the program ``name`` that computes ``model`` under ``schedule``."""
    if schedule.on_chip_bytes is None:
        fusion = Fusion((tuple(model.kernels),), frozenset())
    else:
        fusion = fused(model, needs_of(model), schedule.on_chip_bytes)
    with Program(name) as program:
        wired = wire(program, model, fusion.spilled)
    if schedule.flops_per_cycle is not None:
        share_out(program, schedule.flops_per_cycle)
    summarise(program, model, wired, fusion)
    return program


class Demand(NamedTuple):
    """The work of a compute unit: its elements, one after the other, and the FLOPs of each."""

    elements: int
    flops: int

    def cycles(self, flops_per_cycle: int) -> int:
        return self.elements * -(-self.flops // flops_per_cycle)


def share_out(program: Program, flops_per_cycle: int) -> None:
    """Share a bandwidth among the compute units of ``program`` that have no bandwidth yet."""
    program.allot(shares(demands_of(program), flops_per_cycle))


def demands_of(program: Program) -> dict[str, Demand]:
    """Return the work of the compute units of ``program`` that have no bandwidth yet.

    Sizes that depend on data count with their mean. If the number of operations depends on unbound
    symbols, a unit counts as one operation per element.
    """
    demands = {}
    for node in program.nodes:
        operator = node.operator
        if not isinstance(operator, ComputeOperator) or not operator.has_arithmetic:
            continue
        if operator.flops_per_cycle is not None:
            continue
        elements = number_of(program, node.input_types[0].count) or 1
        costs = operator.costs(node.input_types, node.output_types)
        flops = number_of(program, costs.flops) or 1
        demands[node.name] = Demand(elements, -(-flops // elements))
    return demands


def shares(demands: Mapping[str, Demand], flops_per_cycle: int) -> dict[str, int]:
    """Return the least bandwidths that minimise the cycles of the slowest unit."""
    if flops_per_cycle < len(demands):
        refuse(
            f"flops_per_cycle is {flops_per_cycle:,} for {len(demands):,} compute units: "
            "expected at least one for each",
            ConfigurationError,
        )
    # With one FLOP per cycle each, every unit finishes within ``most`` cycles.
    least = max((demand.elements for demand in demands.values()), default=0)
    most = max((demand.cycles(1) for demand in demands.values()), default=0)
    while least < most:
        cycles = (least + most) // 2
        if sum(_share(demand, cycles) for demand in demands.values()) <= flops_per_cycle:
            most = cycles
        else:
            least = cycles + 1
    return {name: _share(each, most) for name, each in demands.items()}


def _share(demand: Demand, cycles: int) -> int:
    """Return the least bandwidth with which a unit finishes within ``cycles``."""
    return -(-demand.flops // (cycles // demand.elements))

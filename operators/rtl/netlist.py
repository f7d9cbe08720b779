"""A program as hardware: its units, the channels between them, and numbers from outside.

Tiles and their arithmetic stay outside of the hardware. A number that steers other operators comes
from outside, like the answers of off-chip memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

# Any: operators and values of all kinds are looked at.
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Hardware, Program, ProgramError, Selector, SelectorType, Tile, Trace, TupleType
from fabric.extend import BufferReference, Element, Empty, Observer, Watched, number_in
from operators.flat_map import FlatMap
from operators.merge_join import Intersect
from operators.rtl.bindings import binding_of, broadcast, is_told
from operators.rtl.blocks import Unit, Widths, bits_of
from operators.rtl.own import OwnModules, Place, is_own, is_tile
from operators.sources import Metadata, Selectors

Fields: TypeAlias = dict[str, int]
"""The fields of a token; others are 0."""


class Outside(Observer):
    """Records the numbers that hardware gets from outside, and the largest values in channels."""

    def __init__(self, program: Program) -> None:
        self._nodes: Final = program.nodes
        self._told: Final = {
            node.name: node.operator
            for node in program.nodes
            if is_told(node.operator, node.output_types)
        }
        self._channels: Final[dict[int, list[Callable[[Element], None]]]] = {}
        self._numbers: Final[dict[str, list[int]]] = {name: [] for name in self._told}
        self._size = self._number_bits = 1

    def tokens(self, unit: str) -> list[Fields] | None:
        """Return the numbers for ``unit`` as fields of tokens; None for a unit without numbers."""
        numbers = self._numbers.get(unit)
        return None if numbers is None else [{"control": each} for each in numbers]

    def widths(self, units: Sequence[Instance], cycles: int, hardware: Hardware) -> Widths:
        types = [each for node in self._nodes for each in node.output_types]
        told = [bits_of(each) for numbers in self._numbers.values() for each in numbers]
        size, number = bits_of(self._size), max([self._number_bits, *told])
        controls = [bits_of(each.get("control", 0)) for unit in units for each in unit.given or ()]
        for value in (each.value for each in types):
            if isinstance(value, SelectorType):
                controls.append(value.width)
            elif isinstance(value, TupleType):
                controls.append(4 * size + 1 if any(map(is_tile, value.items)) else 2 * number)
        if any(isinstance(node.operator, Intersect) for node in self._nodes):
            controls.append(3 * number)
        # A Reassemble keeps a level that is one above the level of its selector.
        level = 1 + max((len(each.shape) for each in types), default=0)
        control, has_registers = max([number, *controls]), hardware.registers.end_cycles > 0
        return Widths(bits_of(level), size, number, control, bits_of(cycles + 1), has_registers)

    def _keep_largest(self, value: object) -> None:
        match value:
            case Tile():
                self._size = max(self._size, value.rows, value.cols)
                if value.data is not None and value.data.size == 1 and value.dtype.kind in "iu":
                    self._number_bits = max(self._number_bits, bits_of(number_in(value)))
            case BufferReference():
                self._number_bits = max(self._number_bits, bits_of(len(value.elements)))
            case tuple():
                for item in value:
                    self._keep_largest(item)

    @override
    def watch(self, channel: Watched) -> Callable[..., object]:
        keeping: list[Callable[[Element], None]] = [self._keep_largest]
        for unit, is_reader in ((channel.producer, False), (channel.consumer, True)):
            operator = self._told.get(unit.name)
            # The number of parts of a FlatMap follows from its input, other numbers from outputs.
            if operator is not None and isinstance(operator, FlatMap) == is_reader:
                keeping.append(self._keeping(unit.name, operator))
        self._channels[channel.number] = keeping
        return lambda element, *_: self._keep(keeping, element)

    @override
    def left_over(self, channel: Watched, element: Element, *_: object) -> None:
        self._keep(self._channels[channel.number], element)

    def _keeping(self, unit: str, operator: Any) -> Callable[[Element], None]:
        numbers = self._numbers[unit]
        if isinstance(operator, FlatMap):
            return lambda element: numbers.append(len(operator.split.apply(element[0])))  # type: ignore[arg-type]
        return lambda element: numbers.append(_number(element[0]))

    @staticmethod
    def _keep(keeping: list[Callable[[Element], None]], element: Element) -> None:
        if not isinstance(element[0], Empty):
            for keep in keeping:
                keep(element)


def _number(value: Any) -> int:
    """Return a number, or the bits of the outputs that a selector names."""
    if isinstance(value, Selector):
        return sum(1 << hit for hit in set(value.hits))
    return number_in(value)


class Channel(NamedTuple):
    name: str
    producer: int
    consumer: int
    depth: int
    forward_cycles: int
    backward_cycles: int

    @property
    def slots(self) -> int:
        return 1 << max(1, (self.depth - 1).bit_length())

    @property
    def hops(self) -> int:
        return max(self.forward_cycles, self.backward_cycles)

    @property
    def module(self) -> str:
        return f"Channel_{self.slots}_{self.hops}"


@dataclass(frozen=True)
class Instance:
    """A unit.

    Attributes:
        module, build: the name of its module, and the builder of the module.
        parameters: constants for the ports of the module.
        inputs, outputs: numbers of channels, in port order.
        given: numbers from outside that it sends or uses, as fields of tokens.
        latencies_cycles: the latency of each burst, in order; None for a unit without bursts.
    """

    name: str
    module: str
    build: Callable[[], Unit]
    parameters: dict[str, int]
    inputs: list[int]
    outputs: list[int]
    given: list[Fields] | None = None
    latencies_cycles: list[int] | None = None


@dataclass(frozen=True)
class Netlist:
    """Units and channels of a program."""

    units: list[Instance]
    channels: list[Channel]
    widths: Widths = field(default_factory=Widths)

    def parameter_bits(self) -> dict[str, int]:
        bits: dict[str, int] = {}
        for unit in self.units:
            for name, value in unit.parameters.items():
                bits[name] = max(bits.get(name, 1), bits_of(value))
        return bits


_MOST_SLOTS: Final = 1 << 16
"""The deepest channel. Its slots are memory of the hardware."""


def _levels(shape: Sequence[int]) -> Iterator[int]:
    """Yield the number of dimensions that each element closes."""
    for place in np.ndindex(*shape):
        level = 0
        for at, size in zip(reversed(place), reversed(shape), strict=True):
            if at + 1 != size:
                break
            level += 1
        yield level


def _sent(place: Place) -> list[Fields]:
    operator = place.operator
    size = {"rows": 1, "cols": 1, "valid_rows": 1, "valid_cols": 1}
    if isinstance(operator, Selectors):
        *shape, _ = operator.choice.shape
        rows = operator.choice.reshape(math.prod(shape), -1).tolist()
        controls = [sum(1 << hit for hit in set(row)) for row in rows]
        fields: list[Fields] = [{"control": control} for control in controls]
    elif isinstance(operator, Metadata):
        shape = list(operator.values.shape)
        fields = [{"control": int(each), **size} for each in operator.values.reshape(-1).tolist()]
    else:
        return _lists(operator.lists, size)
    if 0 in shape:
        raise place.refused(" for streams that are empty")
    return [{"level": level, **each} for level, each in zip(_levels(shape), fields, strict=True)]


def _lists(lists: Any, size: Fields) -> list[Fields]:
    tokens: list[Fields] = []
    for number, each in enumerate(lists):
        closing = 2 if number == len(lists) - 1 else 1
        if not len(each):
            tokens.append({"bare": 1, "level": closing})
        for at, control in enumerate(each):
            level = closing if at == len(each) - 1 else 0
            tokens.append({"level": level, "control": int(control), **size})
    return tokens or [{"bare": 1, "level": 2, "empty": 1}]


def netlist(program: Program, trace: Trace, outside: Outside, most_cycles: int) -> Netlist:
    """Return the hardware of ``program``, from the ``trace`` of its run in timing mode.

    ``outside`` has observed that run, and the hardware may run for ``most_cycles``. The trace has
    the channels, their depths and hops, the units of inferred Broadcasts, and the latency of every
    burst.
    """
    nodes = {node.name: node for node in program.nodes}
    channels, readers, writers = _channels(trace)
    units = trace.query("SELECT name, operator, flops_per_cycle FROM units ORDER BY unit").rows()
    latencies: dict[int, list[int]] = {}
    bursts = trace.query("SELECT unit, cycles FROM bursts ORDER BY unit, submitted_cycle").rows()
    for number, cycles in bursts:
        latencies.setdefault(number, []).append(int(cycles))
    instances, own = [], OwnModules()
    for number, (name, operator, rate) in enumerate(units):
        inputs, outputs = readers.get(number, {}), writers.get(number, {})
        node = nodes.get(name)
        if node is None:
            if operator != "Broadcast":
                raise ProgramError(f"{name}: {operator} has no hardware module")
            place = Place(name, None, (), (None,) * len(outputs), (), 1, 0)  # type: ignore[arg-type]
            module, build, parameters = broadcast(place)
        else:
            place = Place(
                name,
                node.operator,
                node.input_types,
                node.output_types,
                tuple(sorted(outputs)),
                program.hardware.on_chip.bytes_per_cycle,
                rate,
            )
            module, build, parameters = binding_of(place)
            if is_own(node.operator):
                module = own.named(name, module, build, (len(inputs), len(outputs)))
        instances.append(
            Instance(
                name,
                module,
                build,
                parameters,
                [inputs[port] for port in sorted(inputs)],
                [outputs[port] for port in sorted(outputs)],
                given=_sent(place) if module == "Source" else outside.tokens(name),
                latencies_cycles=latencies.get(number, [])
                if module.startswith(("Load", "Store"))
                else None,
            )
        )
    for each in channels:
        if each.depth > _MOST_SLOTS:
            raise ProgramError(
                f"{each.name} is {each.depth:,} deep: expected at most {_MOST_SLOTS:,} in hardware"
            )
    widths = outside.widths(instances, most_cycles, program.hardware)
    return Netlist(instances, channels, widths)


def _channels(
    trace: Trace,
) -> tuple[list[Channel], dict[int, dict[int, int]], dict[int, dict[int, int]]]:
    rows = trace.query(
        "SELECT name, producer, consumer, depth, forward_cycles, backward_cycles, reader "
        "FROM channels ORDER BY channel"
    ).rows()
    channels = [Channel(*row) for *row, _ in rows]
    readers: dict[int, dict[int, int]] = {}
    writers: dict[int, dict[int, int]] = {}
    for number, (name, producer, consumer, *_, reader) in enumerate(rows):
        writer = name.removesuffix(f" -> {reader}")
        writers.setdefault(producer, {})[int(writer.rpartition(".")[2])] = number
        readers.setdefault(consumer, {})[int(reader.rpartition(".")[2])] = number
    return channels, readers, writers

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.engine import Body, Channel, Process, Simulation, Steps, put, slot, take
from tests.model.hbm import Hbm


@dataclass(frozen=True)
class Setting:
    """The machine.

    Attributes:
        element_bytes: of one number.
        on_chip: bytes per cycle of a memory unit.
        depth: of every channel.
        hop: cycles of an element in every channel, and of its credit.
        apart: the least cycles between two elements at either end of a channel; 0 or 1.
        registers: cycles for waits, for choices and for ends, each 0 or 1, and for costs.
        flops: per cycle of every compute unit.
        channels, request, latency, interval, startup, bundle: of the HBM.
        early: whether EagerMerge's selector may leave when every input has shown a head.
    """

    element_bytes: int = 2
    on_chip: int = 64
    depth: int = 2
    hop: tuple[int, int] = (1, 1)
    apart: int = 0
    registers: tuple[int, int, int, int] = (0, 0, 0, 0)
    flops: int = 4096
    channels: int = 32
    request: int = 64
    latency: int = 2
    interval: int = 2
    startup: int = 14
    bundle: int = 1
    early: bool = True


class Tile(NamedTuple):
    """A tile; ``valid`` rows are not padding, and reading it takes cycles if ``mu``."""

    rows: int
    cols: int
    element_bytes: int
    mu: bool
    valid: int

    @property
    def size(self) -> int:
        return self.rows * self.cols * self.element_bytes


@dataclass
class Stream:
    """An output and its inputs, as pairs of a process and an input."""

    readers: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """Clocks of units and elements of channels, in ascending order."""

    cycles: int | None  # None for a deadlock
    clocks: list[int]
    elements: list[int]


@dataclass
class _Node:
    name: str
    body: Body
    inputs: list[Stream]
    outputs: list[Stream]
    polls: bool


class Graph:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.hbm = Hbm(setting)
        self._nodes: list[_Node] = []

    def add(
        self,
        name: str,
        body: Body,
        inputs: Sequence[Stream] = (),
        outputs: int = 1,
        *,
        polls: bool = False,
    ) -> list[Stream]:
        node = _Node(name, body, list(inputs), [Stream() for _ in range(outputs)], polls)
        for index, stream in enumerate(node.inputs):
            stream.readers.append((len(self._nodes), index))
        self._nodes.append(node)
        return node.outputs

    def feed(self, stream: Stream, loop: Stream) -> None:
        for index, number in loop.readers:
            self._nodes[index].inputs[number] = stream
        stream.readers += loop.readers

    def hop(self, stream: Stream) -> Stream:
        return self.add("hop", broadcast, [stream])[0]

    def run(self) -> Outcome:
        simulation = Simulation()
        rests, _, spaced, _ = self.setting.registers
        hop = (*self.setting.hop, self.setting.apart, rests, spaced)
        arriving: dict[tuple[int, int], Channel] = {}
        firsts: list[Channel] = []  # channels to inferred broadcasts
        leaving: list[list[Channel]] = []
        for node in self._nodes:
            leaving.append([])
            for stream in node.outputs:
                # An output without a reader never waits.
                first = Channel(self.setting.depth if stream.readers else 2**62, *hop)
                leaving[-1].append(first)
                if len(stream.readers) == 1:
                    arriving[stream.readers[0]] = first
                elif stream.readers:
                    firsts.append(first)
                    copies = [Channel(self.setting.depth, *hop) for _ in stream.readers]
                    arriving.update(zip(stream.readers, copies, strict=True))
                    process = Process(simulation, f"broadcast of {node.name}")
                    simulation.start(process, broadcast(process, [first], copies), copies)
        for index, (node, outputs) in enumerate(zip(self._nodes, leaving, strict=True)):
            inputs = [arriving[index, number] for number in range(len(node.inputs))]
            process = Process(simulation, node.name, polls=node.polls)
            simulation.start(process, node.body(process, inputs, outputs), outputs)
        self.hbm.attach(simulation)
        completed = simulation.run()
        clocks = sorted(each.t for each in simulation.processes)
        elements = sorted(len(each.taken) for each in [*arriving.values(), *firsts])
        cycles = max(clocks[-1], self.hbm.clock())
        return Outcome(cycles if completed else None, clocks, elements)


def broadcast(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
    """Copy to all outputs at one clock."""
    while (element := (yield from take(p, inputs[0]))) is not None:
        for output in outputs:
            yield from slot(p, output)
        for output in outputs:
            put(p, output, *element, requested=p.t)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from typing_extensions import override

from fabric import Feedback, Program, Stream, StreamType, Tile, TileType
from fabric.extend import Operator, Ports, Wiring

Step = tuple[str, int]

_BYTE = np.dtype(np.uint8)

ROUNDS = 6  # of a unit


@dataclass(frozen=True)
class Shape:
    units: int
    ends: tuple[tuple[int, int], ...]
    element_bytes: tuple[int, ...]
    initial: tuple[int, ...]

    def inputs(self, unit: int) -> list[int]:
        return [number for number, (_, consumer) in enumerate(self.ends) if consumer == unit]

    def outputs(self, unit: int) -> list[int]:
        return [number for number, (producer, _) in enumerate(self.ends) if producer == unit]

    def loops(self, unit: int) -> bool:
        reached, front = set[int](), [unit]
        while front:
            sends = front.pop()
            new = {reader for writer, reader in self.ends if writer == sends} - reached
            reached |= new
            front += new
        return unit in reached


@dataclass(frozen=True)
class Network:
    shape: Shape
    steps: tuple[tuple[Step, ...], ...]

    @property
    def elements(self) -> tuple[int, ...]:
        every = [step for steps in self.steps for step in steps]
        return tuple(every.count(("s", number)) for number in range(len(self.shape.ends)))


def shape(random: Random) -> Shape:
    units = random.randint(2, 6)
    channels = random.randint(max(2, units - 1), 7)
    # First a chain or a tree, then further channels between any two units, some of them backwards.
    ends = [(random.randint(max(0, unit - 2), unit - 1), unit) for unit in range(1, units)]
    initial = [0] * len(ends)
    while len(ends) < channels:
        low, high = sorted(random.sample(range(units), 2))
        backwards = random.random() < 0.3
        ends.append((high, low) if backwards else (low, high))
        initial.append(random.randint(1, 3) if backwards else 0)
    element_bytes = tuple(random.choice((1, 2, 4, 16, 64)) for _ in ends)
    return Shape(units, tuple(ends), element_bytes, tuple(initial))


def network(random: Random, of: Shape) -> Network:
    rhythms = [_rhythm(random, of, unit) for unit in range(of.units)]
    steps: list[list[Step]] = [
        [("s", number) for number in of.outputs(unit) for _ in range(of.initial[number])]
        for unit in range(of.units)
    ]
    held = list(of.initial)
    rounds = [random.randint(2, ROUNDS) for _ in range(of.units)]
    waiting = list(range(of.units))
    while waiting:
        unit = waiting.pop(0)
        if not rounds[unit]:
            continue
        rounds[unit] -= 1
        round_ = _round(random, rhythms[unit])
        needs = {number: round_.count(("r", number)) for number in of.inputs(unit)}
        if any(held[number] < count for number, count in needs.items()):
            continue
        for number, count in needs.items():
            held[number] -= count
        for number in of.outputs(unit):
            held[number] += round_.count(("s", number))
        steps[unit] += round_
        waiting += range(of.units)
    for unit in range(of.units):
        # Units outside of loops may wait for the end of their inputs; other units leave elements
        # over.
        if not of.loops(unit) and random.random() < 0.5:
            steps[unit] += [("e", number) for number in of.inputs(unit)]
    return Network(of, tuple(map(tuple, steps)))


@dataclass(frozen=True)
class Rhythm:
    rates: tuple[tuple[str, int, int], ...]
    ragged: bool
    mixed: bool
    cycles: tuple[int, ...]


def _rhythm(random: Random, of: Shape, unit: int) -> Rhythm:
    rates = [("r", number, random.choice((1, 1, 1, 2, 3))) for number in of.inputs(unit)]
    rates += [("s", number, random.choice((1, 1, 1, 2, 3))) for number in of.outputs(unit)]
    cycles = random.choice(((0,), (1,), (2,), (1, 4), (0, 7), (3,)))
    return Rhythm(tuple(rates), random.random() < 0.3, random.random() < 0.4, cycles)


def _round(random: Random, rhythm: Rhythm) -> list[Step]:
    groups: list[list[Step]] = []
    for letter, number, rate in rhythm.rates:
        count = random.randint(1, rate + 1) if rhythm.ragged else rate
        looks: list[Step] = [("p", number)] if letter == "r" and random.random() < 0.2 else []
        groups.append([*looks, *([(letter, number)] * count)])
    if rhythm.mixed:
        random.shuffle(groups)
    groups.insert(random.randint(0, len(groups)), [("c", random.choice(rhythm.cycles))])
    return [step for group in groups for step in group]


# --------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Steps(Operator):
    steps: tuple[Step, ...]
    element_bytes: tuple[int, ...]

    def __call__(self, *inputs: Stream) -> tuple[Stream, ...]:
        return self.wire(*inputs)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return tuple(map(_type, self.element_bytes))

    @override
    async def run(self, ports: Ports) -> None:
        for letter, number in self.steps:
            match letter:
                case "r":
                    assert await ports.inputs[number].receive() is not None
                case "p":
                    assert await ports.inputs[number].peek() is not None
                case "e":
                    while await ports.inputs[number].receive() is not None:
                        pass
                case "s":
                    tile = Tile(1, self.element_bytes[number], _BYTE)
                    await ports.outputs[number].send((tile, 0))
                case _:
                    ports.unit.charge(number)


def program_of(network: Network) -> Program:
    of = network.shape
    with Program("network") as program:
        streams: dict[int, Stream] = {
            number: Feedback(_type(of.element_bytes[number]))
            for number, (producer, consumer) in enumerate(of.ends)
            if producer > consumer
        }
        for unit, steps in enumerate(network.steps):
            inputs, outputs = of.inputs(unit), of.outputs(unit)
            made = Steps(
                tuple(_local(step, inputs, outputs) for step in steps),
                tuple(of.element_bytes[number] for number in outputs),
                name=f"u{unit}",
            )(*(streams[number] for number in inputs))
            for number, stream in zip(outputs, made, strict=True):
                loop = streams.setdefault(number, stream)
                if isinstance(loop, Feedback):
                    loop.connect(stream)
    return program


def options_of(of: Shape) -> list[str]:
    return [
        f"u{consumer}.{of.inputs(consumer).index(number)}"
        for number, (_, consumer) in enumerate(of.ends)
    ]


def _local(step: Step, inputs: Sequence[int], outputs: Sequence[int]) -> Step:
    letter, number = step
    if letter == "c":
        return step
    return letter, (outputs if letter == "s" else inputs).index(number)


def _type(element_bytes: int) -> StreamType:
    return StreamType((1,), TileType(1, element_bytes, _BYTE))

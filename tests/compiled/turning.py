"""Operators that state ``turns`` and do something that cannot be recorded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from fabric import Program, Tile
from fabric.extend import Ports
from operators import Consumer, Metadata
from tests.bases import Passing


@dataclass(frozen=True)
class Turning(Passing):
    conducted = turns = True

    does: Any

    @override
    async def run(self, ports: Ports) -> None:
        source, sink = ports.source, ports.sink
        number = 0
        while (element := await source.receive()) is not None:
            number += 1
            memory = await self.does(ports, number, element[0])
            await sink.send(element)
            ports.turn(*(() if memory is None else (memory,)))


@dataclass(frozen=True)
class Carrying(Turning):
    conducted = turns = carries_numbers = True


def numbers(operator: Turning, values: tuple[int, ...] = (3, 1, 4, 1, 5)) -> Program:
    with Program("turning", mode="timing") as program:
        Consumer()(operator(Metadata(np.array(values))()))
    return program


async def _reads_the_clock(ports: Ports, _: int, __: Tile) -> None:
    ports.unit.charge(ports.unit.now % 3)


async def _compares_clocks(ports: Ports, _: int, __: Tile) -> None:
    before = ports.unit.now
    ports.unit.charge(1)
    if ports.unit.now == before:
        ports.unit.charge(100)


async def _asks_whether_it_began(ports: Ports, _: int, __: Tile) -> None:
    if ports.unit.now:
        ports.unit.charge(1)


async def _charges(cycles: Any, ports: Ports, _: int, __: Tile) -> None:
    ports.unit.charge(cycles)


async def _keeps_what_has_no_hash(_: Ports, __: int, ___: Tile) -> object:
    return {1, 2}


async def _keeps_a_clock(ports: Ports, _: int, __: Tile) -> object:
    return ports.unit.now


async def _does_too_much(ports: Ports, _: int, __: Tile) -> None:
    for _ in range(10_001):
        ports.unit.charge(1)


async def _repeats_in_a_repetition(ports: Ports, _: int, __: Tile) -> None:
    for _ in ports.times(2):
        for _ in ports.times(2):
            ports.unit.charge(1)


async def _looks_at_its_channel(ports: Ports, _: int, __: Tile) -> None:
    ports.unit.charge(ports.source.elements)


async def _looks_at_a_number(ports: Ports, _: int, tile: Tile) -> None:
    assert tile.data is not None
    ports.unit.charge(int(tile.data.item()))


async def _adds_to_a_number(ports: Ports, _: int, tile: Tile) -> None:
    ports.unit.charge((ports.number(tile, 10) or 0) + 1)


async def _compares_a_number(ports: Ports, _: int, tile: Tile) -> None:
    ports.unit.charge(7 if ports.number(tile, 10) == 1 else 1)


async def _keeps_a_number(ports: Ports, _: int, tile: Tile) -> object:
    return ports.number(tile, 10)


# Operators that cannot be recorded.
GIVE_UP: list[Turning] = [
    *map(
        Turning,
        (
            _reads_the_clock,
            _compares_clocks,
            _asks_whether_it_began,
            _keeps_what_has_no_hash,
            _keeps_a_clock,
            _does_too_much,
            _repeats_in_a_repetition,
            _looks_at_its_channel,
            *(partial(_charges, cycles) for cycles in (np.int64(2), 1 << 70, -1)),
        ),
    ),
    *map(Carrying, (_looks_at_a_number, _adds_to_a_number, _compares_a_number, _keeps_a_number)),
]

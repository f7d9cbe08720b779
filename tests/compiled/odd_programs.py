"""Small programs that each reach one limit of the compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

import operators as op
from fabric import Program, Stream, StreamType, Tile, TileType
from fabric.extend import BoolType, Element, Empty, Operator, Ports, Wiring
from fabric.graph.values.dims import symbol
from tests.bases import Passing
from tests.deadlock.parts import Script, feedback
from tests.operators.driving import Emit

FLOAT = np.dtype(np.float32)
ONE = Tile(1, 1, FLOAT)


@dataclass(frozen=True)
class First(Passing):
    count: int

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.count):
            await ports.source.receive()
        await ports.sink.send((True, 0))


@dataclass(frozen=True)
class Stops(Operator):
    conducted = turns = True

    count: int

    def __call__(self, *sources: Stream) -> Stream:
        return self.wire(*sources)[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1,), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for number in range(self.count):
            await ports.inputs[0].receive()
            ports.unit.charge(3)
            ports.turn(number)
        await ports.sink.send((True, 0))


def numbers(*values: int) -> Stream:
    return op.Metadata(np.array(values))()


def _of(wire: Callable[[], object]) -> Callable[[], Program]:
    def build() -> Program:
        with Program(wire.__name__.strip("_"), mode="timing") as program:
            wire()
        return program

    build.__name__ = wire.__name__.strip("_").replace("_", " ")
    return build


def _bad_address() -> None:
    op.Consumer()(op.RandomOffChipLoad(op.Tensor((4, 4)), (2, 2))(numbers(3, 2, 7, 1)))


def _address_in_64_bits() -> None:
    op.Consumer()(
        op.RandomOffChipLoad(op.Tensor((1 << 40, 1 << 40)), (1, 1))(numbers(3, 1 << 50, 7))
    )


def _tile_of_a_day() -> None:
    tile = 1 << 22, 1 << 40
    op.Consumer()(op.LinearOffChipLoad(op.Tensor(tile), tile)(numbers(1, 2)))


def _matmul(size: int, count: int) -> None:
    tile = Tile(size, size, FLOAT)
    elements = [(tile, 0)] * (count - 1) + [(tile, 1)]
    both = Emit(StreamType((1, count), TileType(size, size, FLOAT)), elements)()
    op.Consumer()(op.Map(op.Matmul(), flops_per_cycle=1)(both, both))


def _clock_beyond_64_bits() -> None:
    _matmul(1 << 40, 4)


def _clock_that_adds_up_beyond_64_bits() -> None:
    _matmul(1 << 19, 40)


def _long_cache() -> None:
    op.Consumer()(op.CacheReadAddresses(30_000)(numbers(0, 1, 2), numbers(5, 20_000, 0)))


def refuted_behind_a_full_channel() -> Program:
    with Program("refuted", mode="timing", channel_depth=1) as program:
        kind = StreamType((1, symbol("R", ragged=True)), TileType(1, 1, FLOAT))
        rows = op.Repeat(1)(Emit(kind, [(ONE, 0), (ONE, 1)])()).assume(1, 3, 1)
        loop = feedback(1)
        (out,) = Script(("r1", "r0", "s0"))(rows, loop)
        loop.connect(out)
    return program


# Programs whose operators continue as tasks.
FALL_BACK = [
    *map(
        _of,
        (
            _bad_address,
            _address_in_64_bits,
            _tile_of_a_day,
            _clock_beyond_64_bits,
            _clock_that_adds_up_beyond_64_bits,
            _long_cache,
        ),
    ),
    refuted_behind_a_full_channel,
]


def _tile(cycle: int = 0) -> Stream:
    return Emit(StreamType((1,), TileType(1, 1, FLOAT)), [(ONE, 0)], (cycle,))()


def _many(source: Stream) -> Stream:
    return op.Repeat(100)(op.Repeat(100)(source))


def _deep_channels() -> None:
    late = _many(_tile(50_000))
    op.Consumer()(op.Zip()(_many(_tile()), late))
    kind = StreamType((1, 3_000), TileType(1, 1, FLOAT))
    once = Emit(kind, [(ONE, 0)] * 2_999 + [(ONE, 1)])()
    op.Consumer()(op.Zip()(once, op.Flatten(0, 1)(op.Repeat(50)(op.Repeat(60)(_tile(50_000))))))
    (out,) = Script(("r1", *["r0"] * 10_000, "s0"), rounds=1)(_many(_tile()), _tile(50_000))
    op.Consumer()(out)


def _full_ledger() -> None:
    op.Consumer()(op.Accum(op.Sum())(op.Promote(0)(_many(_tile()))))


def _huge_numbers() -> None:
    many = numbers(3, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 0)
    op.Consumer()(op.Repeat(3)(many))
    op.Consumer()(op.Zip()(many, many))


def _ends_early() -> None:
    ended = First(3)(op.Repeat(2)(numbers(*range(50))))
    op.Consumer()(ended)


def _stops_in_the_loop() -> None:
    rows = StreamType((4, symbol("R", ragged=True)), TileType(1, 1, FLOAT))
    elements: list[Element] = [(ONE, 0), (ONE, 1), (Empty(0), 1), (ONE, 1), (Empty(0), 1)]
    once = Emit(rows, elements, (2, 9))()
    op.Consumer()(Stops(4)(op.Repeat(3)(numbers(*range(20)))))
    op.Consumer()(Stops(2)(op.Repeat(2)(numbers(*range(7))), op.Repeat(2)(once), once))
    op.Consumer()(Stops(1)(once))
    fast = Emit(StreamType((1, 20), TileType(1, 1, FLOAT)), [(ONE, 0)] * 19 + [(ONE, 1)])()
    op.Consumer()(Stops(3)(fast))


def _empty_everywhere() -> None:
    kind = StreamType((2, symbol("R", ragged=True)), TileType(1, 1, FLOAT))
    streams: list[list[Element]] = [[], [(Empty(0), 1)] * 2, [(Empty(0), 1), (ONE, 1)]]
    for elements in streams:
        op.Consumer()(op.Repeat(2)(op.Flatten(0, 1)(Emit(kind, elements)())))


def _loaded_numbers() -> None:
    loaded = op.LinearOffChipLoad(op.Tensor((1, 8), np.arange(8).reshape(1, 8)), (1, 1))()
    steering = op.Selectors(np.array([[0], [1], [1], [0], [1], [0], [0], [1]]), 2)()
    left, right = op.Partition(2)(
        op.Flatten(0, 1)(op.Flatten(0, 1)(loaded)), op.Flatten(0, 1)(steering)
    )
    table = op.Tensor((1, 8), np.arange(8)[::-1].reshape(1, 8))
    op.Consumer()(
        op.RandomOffChipLoad(op.Tensor((16, 16)), (2, 2))(op.RandomOffChipLoad(table, (1, 1))(left))
    )
    op.Consumer()(right)


def _repeats() -> None:
    op.Consumer()(op.FilterLastTile()(numbers(5, 0, 1, 2, 300)))


# Programs that stay compiled until they end.
STAY = [
    *map(
        _of,
        (
            _deep_channels,
            _full_ledger,
            _repeats,
            _huge_numbers,
            _ends_early,
            _stops_in_the_loop,
            _empty_everywhere,
            _loaded_numbers,
        ),
    )
]

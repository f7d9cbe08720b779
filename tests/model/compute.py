"""Map and Accum with their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tests.model.engine import Channel, Process, Steps, end, peek, send, take, wait
from tests.model.graph import Graph, Stream, Tile

# Cycles and result of a function. The operator decides whether the result is in memory.
Function: TypeAlias = Callable[..., tuple[int, Any]]


def cycles(g: Graph, flops: int) -> int:
    return -(-flops // g.setting.flops)


def paid(g: Graph, value: Any) -> int:
    """Return the cycles to read ``value``: 0 unless it is a tile in memory."""
    if isinstance(value, Tile) and value.mu:
        return -(-value.size // g.setting.on_chip)
    return 0


def charged(g: Graph, cost: int) -> int:
    return cost + g.setting.registers[3] if cost else 0


def _written(g: Graph, value: Any, to_memory: bool) -> tuple[int, Any]:
    if isinstance(value, Tile):
        value = value._replace(mu=to_memory)
        return paid(g, value), value
    return 0, value


def map1(
    g: Graph, name: str, function: Function, data: Stream, *, to_memory: bool = False
) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from peek(p, inputs[0]))) is not None:
            busy, result = function(element[0])
            writing, result = _written(g, result, to_memory)
            yield from wait(p, charged(g, max(paid(g, element[0]), busy, writing)))
            yield from send(p, outputs[0], result, element[1])
            yield from take(p, inputs[0])

    return g.add(name, body, [data])[0]


def map2(
    g: Graph, name: str, function: Function, a: Stream, b: Stream, *, to_memory: bool = False
) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (left := (yield from peek(p, inputs[0]))) is not None:
            right = yield from peek(p, inputs[1])
            assert right is not None, name
            assert left[1] == right[1], (name, left, right)
            busy, result = function(left[0], right[0])
            writing, result = _written(g, result, to_memory)
            reading = paid(g, left[0]) + paid(g, right[0])
            yield from wait(p, charged(g, max(reading, busy, writing)))
            yield from send(p, outputs[0], result, left[1])
            yield from take(p, inputs[0])
            yield from take(p, inputs[1])
        yield from end(p, inputs[1])

    return g.add(name, body, [a, b])[0]


def fold(
    g: Graph,
    name: str,
    function: Function,
    inputs: list[Stream],
    store_cycles: int = 0,
    rank: int = 1,
) -> Stream:
    """Accum and BinaryMapAccum of groups of ``rank``; the accumulator is None at first.

    ``store_cycles`` are charged with the last element of a group; the result is then in memory.
    """

    def body(p: Process, channels: list[Channel], outputs: list[Channel]) -> Steps[None]:
        accumulator = None
        while (first := (yield from peek(p, channels[0]))) is not None:
            values = [first[0]]
            for channel in channels[1:]:
                other = yield from peek(p, channel)
                assert other is not None, name
                assert other[1] == first[1], (name, first, other)
                values.append(other[0])
            busy, accumulator = function(accumulator, *values)
            closing = first[1] >= rank
            reading = sum(paid(g, value) for value in values)
            yield from wait(p, charged(g, max(reading, busy, store_cycles if closing else 0)))
            for channel in channels:
                yield from take(p, channel)
            if closing:
                if store_cycles:
                    accumulator = accumulator._replace(mu=True)
                yield from send(p, outputs[0], accumulator, first[1] - rank)
                accumulator = None
        yield from end(p, *channels[1:])

    return g.add(name, body, inputs)[0]


def matmul(g: Graph, *, transposed: bool = False) -> Function:
    """Multiply M x K by K x N, or by N x K if ``transposed``."""

    def function(a: Tile, b: Tile) -> tuple[int, Tile]:
        inner, columns = (b.cols, b.rows) if transposed else (b.rows, b.cols)
        assert a.cols == inner
        result = Tile(a.rows, columns, g.setting.element_bytes, False, a.valid)
        return cycles(g, 2 * a.rows * inner * columns), result

    return function


def matmul_sum(g: Graph) -> Function:
    """Multiply and add to the accumulator; the addition takes no cycles."""
    multiply = matmul(g)
    return lambda _accumulator, a, b: multiply(a, b)


def elementwise(g: Graph, flops: int) -> Function:
    """Charge ``flops`` for each element of the broadcast result."""

    def function(a: Tile, *others: Tile) -> tuple[int, Tile]:
        rows = max(each.rows for each in (a, *others))
        columns = max(each.cols for each in (a, *others))
        valid = max(each.valid for each in (a, *others))
        result = Tile(rows, columns, g.setting.element_bytes, False, valid)
        return cycles(g, flops * rows * columns), result

    return function


def added(g: Graph) -> Function:
    add = elementwise(g, 1)
    return lambda _accumulator, tile: add(tile)


def row_sum(g: Graph) -> Function:
    return lambda a: (cycles(g, a.rows * a.cols), a._replace(cols=1, mu=False))


def retile(accumulator: Tile | None, tile: Tile) -> tuple[int, Tile]:
    """Append rows; the result is in memory if ``tile`` is."""
    if accumulator is None:
        return 0, tile
    rows, valid = accumulator.rows + tile.rows, accumulator.valid + tile.valid
    return 0, tile._replace(rows=rows, valid=valid)

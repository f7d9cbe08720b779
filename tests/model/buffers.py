"""On-chip memory."""

from __future__ import annotations

from tests.model.engine import Channel, Process, Steps, end, peek, send, take, wait
from tests.model.graph import Graph, Stream, Tile


def bufferize(g: Graph, data: Stream) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        tiles: list[Tile] = []
        while (element := (yield from take(p, inputs[0]))) is not None:
            tiles.append(element[0])
            if element[1]:
                yield from send(p, outputs[0], tiles, element[1] - 1)
                tiles = []
            else:
                yield from wait(p, 1)

    return g.add("bufferize", body, [data])[0]


def _read(p: Process, output: Channel, tiles: list[Tile], stop: int) -> Steps[None]:
    for number, tile in enumerate(tiles, 1):
        yield from send(p, output, tile, stop if number == len(tiles) else 0)
        yield from wait(p, 1)


def streamify(g: Graph, times: int | None, buffers: Stream) -> Stream:
    """Read every buffer ``times`` times as a further dimension; once, without it, if None."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from peek(p, inputs[0]))) is not None:
            tiles, stop = element
            for _ in range(1, times or 1):
                yield from _read(p, outputs[0], tiles, 1)
            yield from _read(p, outputs[0], tiles, 1 + stop + (times is not None))
            yield from take(p, inputs[0])

    return g.add("streamify", body, [buffers])[0]


def streamify_per_reference(g: Graph, buffers: Stream, reference: Stream) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from peek(p, inputs[0]))) is not None:
            stop = 0
            while not stop:
                copy = yield from take(p, inputs[1])
                assert copy is not None
                stop = copy[1]
                yield from _read(p, outputs[0], element[0], 1 + stop)
            yield from take(p, inputs[0])
        yield from end(p, inputs[1])

    return g.add("streamify", body, [buffers, reference])[0]

"""Loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.model.engine import Channel, Process, Steps, end, peek, send, take
from tests.model.graph import Graph, Stream, Tile


def _stops(shape: Sequence[int]) -> list[int]:
    """Return the stop level of every index of ``shape``, in row-major order."""
    stops = []
    for index in product(*(range(extent) for extent in shape)):
        stop = 0
        for at, extent in zip(reversed(index), reversed(shape), strict=True):
            if at != extent - 1:
                break
            stop += 1
        stops.append(stop)
    return stops


def load(g: Graph, tile: tuple[int, int], shape: Sequence[int], name: str = "load") -> Stream:
    """A load of tiles, [1, *shape]."""
    client = g.hbm.reader()
    loaded = Tile(*tile, g.setting.element_bytes, True, tile[0])

    def body(p: Process, _inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        client.process = p
        for stop in _stops(shape):
            yield from client.access(p, *tile)
            yield from send(p, outputs[0], loaded, stop)

    return g.add(name, body)[0]


def load_per_reference(
    g: Graph, reference: Stream, tile: tuple[int, int], shape: Sequence[int], name: str
) -> Stream:
    """A load of the tiles of ``shape`` for every element of ``reference``."""
    client = g.hbm.reader()
    loaded = Tile(*tile, g.setting.element_bytes, True, tile[0])
    stops = _stops(shape)

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        client.process = p
        while (element := (yield from take(p, inputs[0]))) is not None:
            for number, stop in enumerate(stops):
                yield from client.access(p, *tile)
                last = number == len(stops) - 1
                yield from send(p, outputs[0], loaded, stop + element[1] if last else stop)

    return g.add(name, body, [reference])[0]


def random_load(g: Graph, addresses: Stream, tile: tuple[int, int], name: str) -> Stream:
    client = g.hbm.reader()
    loaded = Tile(*tile, g.setting.element_bytes, True, tile[0])

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        client.process = p
        while (element := (yield from take(p, inputs[0]))) is not None:
            yield from client.access(p, *tile)
            yield from send(p, outputs[0], loaded, element[1])

    return g.add(name, body, [addresses])[0]


def store(g: Graph, data: Stream) -> None:
    """Store tiles; the slot is freed after the last acknowledgement."""
    client = g.hbm.writer()

    def body(p: Process, inputs: list[Channel], _outputs: list[Channel]) -> Steps[None]:
        client.process = p
        while (element := (yield from peek(p, inputs[0]))) is not None:
            tile: Tile = element[0]
            yield from client.access(p, tile.rows, tile.cols)
            yield from take(p, inputs[0])

    g.add("store", body, [data], 0)


def random_store(g: Graph, addresses: Stream, data: Stream, name: str) -> Stream:
    """Store a tile for every address; return the acknowledgements."""
    client = g.hbm.writer()

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        client.process = p
        while (address := (yield from peek(p, inputs[0]))) is not None:
            element = yield from peek(p, inputs[1])
            assert element is not None
            tile: Tile = element[0]
            yield from client.access(p, tile.rows, tile.cols)
            yield from send(p, outputs[0], True, address[1])
            yield from take(p, inputs[0])
            yield from take(p, inputs[1])
        yield from end(p, inputs[1])

    return g.add(name, body, [addresses, data])[0]

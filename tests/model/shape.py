"""Shape operators."""

from __future__ import annotations

from tests.model.engine import Channel, Process, Steps, end, peek, send, take, wait
from tests.model.graph import Graph, Stream, Tile


def flatten(g: Graph, low: int, high: int, data: Stream) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from take(p, inputs[0]))) is not None:
            value, stop = element
            if stop > high:
                stop -= high - low
            elif stop > low:
                stop = low
            yield from send(p, outputs[0], value, stop)

    return g.add("flatten", body, [data])[0]


def reshape(g: Graph, dimension: int, data: Stream, chunk: int = 1) -> Stream:
    """Raise every ``chunk``-th stop of at least ``dimension`` by one level."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        count = 0
        while (element := (yield from take(p, inputs[0]))) is not None:
            value, stop = element
            count += stop >= dimension
            if count == chunk:
                count, stop = 0, stop + 1
            yield from send(p, outputs[0], value, stop)

    return g.add("reshape", body, [data])[0]


def reshape_padded(g: Graph, chunk: int, tile: tuple[int, int], data: Stream) -> Stream:
    """Chunks of the innermost dimension; the last chunk of every group is padded."""
    padding = Tile(*tile, g.setting.element_bytes, False, 0)

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        count = 0
        while (element := (yield from take(p, inputs[0]))) is not None:
            value, stop = element
            count += 1
            if stop and count < chunk:
                yield from send(p, outputs[0], value)
                for missing in range(chunk - count, 0, -1):
                    yield from send(p, outputs[0], padding, stop + 1 if missing == 1 else 0)
                count = 0
            elif count == chunk:
                yield from send(p, outputs[0], value, stop + 1)
                count = 0
            else:
                yield from send(p, outputs[0], value)

    return g.add("reshape padded", body, [data])[0]


def reshape_outer(g: Graph, chunk: int, columns: int, data: Stream) -> Stream:
    """A stream of rank 0 in chunks, [1, n, chunk], padded at its end."""
    padding = Tile(1, columns, g.setting.element_bytes, False, 0)

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        count = 0
        while (element := (yield from take(p, inputs[0]))) is not None:
            count += 1
            stop = 0
            if count == chunk:
                # The next element, or the end, decides whether this chunk is the last.
                stop = 2 if (yield from peek(p, inputs[0])) is None else 1
                count = 0
            yield from send(p, outputs[0], element[0], stop)
        if count:
            for missing in range(chunk - count, 0, -1):
                yield from send(p, outputs[0], padding, 2 if missing == 1 else 0)

    return g.add(f"reshape {chunk}", body, [data])[0]


def repeat(g: Graph, times: int, data: Stream, name: str) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from peek(p, inputs[0]))) is not None:
            value, stop = element
            for i in range(times):
                last = i == times - 1
                requested = None if g.setting.apart else p.t + i
                yield from send(p, outputs[0], value, stop + 1 if last else 0, requested)
            yield from wait(p, 0 if g.setting.apart else times)
            yield from take(p, inputs[0])

    return g.add(name, body, [data])[0]


def expand(g: Graph, data: Stream, reference: Stream, name: str) -> Stream:
    """Expand of rank 1; ``data`` is [b, 1]."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from peek(p, inputs[0]))) is not None:
            assert element[1] >= 1
            stop = 0
            while not stop:
                copy = yield from take(p, inputs[1])
                assert copy is not None
                stop = copy[1]
                yield from send(p, outputs[0], element[0], stop)
            yield from take(p, inputs[0])
        yield from end(p, inputs[1])

    return g.add(name, body, [data, reference])[0]


def split_rows(g: Graph, data: Stream, name: str) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (element := (yield from take(p, inputs[0]))) is not None:
            tile: Tile = element[0]
            assert tile.valid
            for row in range(tile.valid):
                last = row == tile.valid - 1
                yield from send(
                    p, outputs[0], tile._replace(rows=1, valid=1), element[1] if last else 0
                )

    return g.add(name, body, [data])[0]


def initial(g: Graph, value: Tile, count: int, data: Stream) -> Stream:
    """Send ``count`` values first, which take slots but no cycles."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        for _ in range(count):
            yield from send(p, outputs[0], value)
        while (element := (yield from take(p, inputs[0]))) is not None:
            yield from send(p, outputs[0], *element)

    return g.add("initial", body, [data])[0]

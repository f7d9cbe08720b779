"""Sources of control data, and routing."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.compute import charged, paid
from tests.model.engine import Channel, Process, Steps, close, end, peek, send, shown, take, wait
from tests.model.graph import Graph, Stream, Tile


def selectors(g: Graph, chosen: Sequence[tuple[Sequence[int], int]]) -> Stream:
    """Send the indices of each selector in ascending order, with its stop."""

    def body(p: Process, _inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        for indices, stop in chosen:
            yield from send(p, outputs[0], tuple(sorted(indices)), stop)
            yield from wait(p, 1)

    return g.add("selectors", body)[0]


def metadata(g: Graph, numbers: Sequence[int]) -> Stream:
    """MetadataGen, [1, n]."""

    def body(p: Process, _inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        for k, number in enumerate(numbers):
            yield from send(p, outputs[0], number, int(k == len(numbers) - 1), k)

    return g.add("metadata", body)[0]


def partition(
    g: Graph,
    data: Stream,
    selector: Stream,
    width: int,
    rank: int = 0,
    switch: int = 1,
    name: str = "partition",
) -> list[Stream]:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (choice := (yield from take(p, inputs[1]))) is not None:
            indices, level = choice
            going_on = True
            while going_on:
                peeked = yield from peek(p, inputs[0])
                assert peeked is not None, name
                value, stop = peeked
                yield from wait(p, charged(g, paid(g, value)))
                yield from take(p, inputs[0])
                yield from wait(p, switch if indices else 0)
                going_on = rank > 0 and stop < rank
                if not going_on:
                    assert stop == (level + rank if level else rank), (name, stop, level)
                sent = value._replace(mu=False) if isinstance(value, Tile) else value
                for index in indices:
                    yield from send(p, outputs[index], sent, min(stop, rank))
        yield from end(p, inputs[0])

    return g.add(name, body, [data, selector], width)


def parallelize(g: Graph, data: Stream, width: int, rank: int = 0, switch: int = 1) -> list[Stream]:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        turn = 0
        while (element := (yield from take(p, inputs[0]))) is not None:
            yield from send(p, outputs[turn], *element, requested=p.t + switch)
            if element[1] >= rank:
                turn = (turn + 1) % width

    return g.add("parallelize", body, [data], width)


def merge(g: Graph, streams: Sequence[Stream], name: str = "merge", rank: int = 0) -> list[Stream]:
    """Return the data and the selectors of an EagerMerge."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (
            index := (yield from _winner(p, inputs, early=g.setting.early and not g.setting.apart))
        ) is not None:
            yield from send(p, outputs[1], (index,))
            going_on = True
            while going_on:
                element = yield from take(p, inputs[index])
                assert element is not None
                yield from send(p, outputs[0], *element)
                going_on = element[1] < rank
                yield from wait(p, int(going_on) or g.setting.registers[1])
        # On channels of wires the end of an input takes a hop, too.
        for each in inputs:
            yield from end(p, each)

    return g.add(name, body, streams, 2, polls=True)


def _winner(p: Process, inputs: list[Channel], *, early: bool) -> Steps[int | None]:
    """Wait for a choice, and return its input, or None when all inputs have ended."""
    while True:
        p.t = max(p.t, p.look, p.simulation.now)
        if p.t > p.simulation.now:
            yield p.t
        heads = [(shown(each), i) for i, each in enumerate(inputs) if each.items]
        unknown = [each for each in inputs if not each.items and each.closed_at is None]
        if not heads and not unknown:
            return None
        if heads and (min(heads)[0] <= p.t or (early and not unknown)):
            return min(heads)[1]
        for each in unknown:
            each.reader = p
        yield min(heads)[0] if heads else None
        for each in unknown:
            each.reader = None


def reassemble(
    g: Graph, streams: Sequence[Stream], selector: Stream, name: str, rank: int = 0, switch: int = 1
) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (choice := (yield from take(p, inputs[-1]))) is not None:
            arrived = []
            for index in choice[0]:
                assert (yield from peek(p, inputs[index])) is not None, name
                arrived.append((shown(inputs[index]), index))
            arrived.sort()
            yield from wait(p, g.setting.registers[1] if arrived else 0)
            for stamp, index in arrived:
                going_on = True
                while going_on:
                    head = yield from peek(p, inputs[index])
                    assert head is not None, name
                    value, stop = head
                    if paid(g, value):
                        yield from wait(p, g.setting.registers[3])
                    ready = stamp + switch + paid(g, value)
                    yield from wait(p, max(ready - p.t, 0))
                    yield from take(p, inputs[index])
                    going_on = stop < rank
                    if not going_on and index == arrived[-1][1]:
                        stop += choice[1] + 1
                    sent = value._replace(mu=False) if isinstance(value, Tile) else value
                    yield from send(p, outputs[0], sent, stop)
                yield from wait(p, g.setting.registers[1])
        # In a loop, the inputs end only after the readers of this operator have seen its end.
        close(p, outputs)
        yield from end(p, *inputs[:-1])

    return g.add(name, body, [*streams, selector])[0]


def expert_addresses(g: Graph, tiles: int, selector: Stream) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (yield from take(p, inputs[0])) is not None:
            for i in range(tiles):
                yield from send(p, outputs[0], i, 2 if i == tiles - 1 else 1)

    return g.add("expert addresses", body, [selector])[0]


def cache_addresses(g: Graph, numbers: Stream, lengths: Stream, name: str) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (yield from take(p, inputs[0])) is not None:
            length = yield from take(p, inputs[1])
            assert length is not None
            start = p.t
            for i in range(length[0]):
                stop = length[1] + 1 if i == length[0] - 1 else 0
                yield from send(p, outputs[0], i, stop, start + i)
        yield from end(p, inputs[1])

    return g.add(name, body, [numbers, lengths])[0]


def filter_last(g: Graph, lengths: Stream) -> Stream:
    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (length := (yield from take(p, inputs[0]))) is not None:
            for _ in range(length[0] - 1):
                yield from send(p, outputs[0], (1,))
            yield from send(p, outputs[0], (0,), length[1] + 1)

    return g.add("filter last", body, [lengths])[0]


def consumer(g: Graph, data: Stream) -> None:
    def body(p: Process, inputs: list[Channel], _outputs: list[Channel]) -> Steps[None]:
        while (yield from take(p, inputs[0])) is not None:
            yield from wait(p, 1)

    g.add("consumer", body, [data], 0)

"""Joins of sorted streams, and updates on chip.

A join takes one cycle for each distinct coordinate, as SAM's blocks take a token a cycle. Updates
that are issued together take as long as their most loaded bank.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.compute import paid
from tests.model.engine import Channel, Process, Steps, end, peek, send, take, wait
from tests.model.graph import Graph, Stream, Tile


def lists(g: Graph, numbers: Sequence[Sequence[int]]) -> Stream:
    """Lists without an empty one, [1, lists, n], one cycle for each element."""

    def body(p: Process, _inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        for at, group in enumerate(numbers):
            for place, number in enumerate(group):
                closing = 1 + (at == len(numbers) - 1)
                yield from send(p, outputs[0], number, closing * (place == len(group) - 1))
                yield from wait(p, 1)

    return g.add("lists", body)[0]


def join(g: Graph, left: Stream, right: Stream, *, keeps_all: bool) -> list[Stream]:
    """Coordinates with left and right payloads; each group ends with a coordinate that is sent."""

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        while (yield from peek(p, inputs[0])) is not None:
            going = {0, 1}
            while going:
                heads = {}
                for side in sorted(going):
                    head = yield from peek(p, inputs[side])
                    assert head is not None
                    heads[side] = head
                low = min(head[0] for head in heads.values())
                hit = [side for side in sorted(heads) if heads[side][0] == low]
                for side in hit:
                    yield from take(p, inputs[side])
                going -= {side for side in hit if heads[side][1]}
                if keeps_all or len(hit) == 2:
                    stop = 0 if going else heads[hit[0]][1]
                    for output in outputs:
                        yield from send(p, output, low, stop)
                yield from wait(p, 1)
        yield from end(p, inputs[1])

    return g.add("join", body, [left, right], 3)


def scatter(
    g: Graph, addresses: Stream, values: Stream, words: int, banks: int, width: int, word: Tile
) -> Stream:
    each = max(1, -(-word.size // g.setting.on_chip))

    def body(p: Process, inputs: list[Channel], outputs: list[Channel]) -> Steps[None]:
        waiting: list[tuple[int, int]] = []
        while (address := (yield from peek(p, inputs[0]))) is not None:
            value = yield from peek(p, inputs[1])
            assert value is not None
            waiting.append((address[0] % banks, paid(g, value[0])))
            if len(waiting) == width:
                yield from wait(p, _issued(waiting, each))
                waiting = []
            yield from take(p, inputs[0])
            yield from take(p, inputs[1])
            if address[1]:
                yield from wait(p, _issued(waiting, each))
                waiting = []
                for number in range(words):
                    stop = address[1] if number == words - 1 else 0
                    yield from send(p, outputs[0], word, stop)
                    yield from wait(p, each)
        yield from end(p, inputs[1])

    return g.add("scatter", body, [addresses, values])[0]


def _issued(waiting: list[tuple[int, int]], each: int) -> int:
    banks = [bank for bank, _ in waiting]
    longest = max((banks.count(bank) for bank in set(banks)), default=0)
    return max(longest * each, sum(load for _, load in waiting))

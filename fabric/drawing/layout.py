"""Layered layout: every arrow points down, labels have room of their own, few crossings.

Arrows that close a cycle are turned round first. Then nodes get layers by their longest path, each
layer is ordered by the neighbours' positions, and the nodes are placed as near to their neighbours
as the order allows (pool adjacent violators).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

__all__ = ["Layout", "Size", "layered"]

_GAP: Final = 24.0
_LAYER_GAP: Final = 16.0
_BEND_WIDTH: Final = 8.0
_ORDER_ROUNDS: Final = 12
_PLACE_ROUNDS: Final = 16

Size = tuple[float, float]
Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Where everything is; y grows downwards.

    Attributes:
        size: of the whole drawing.
        nodes: centres.
        labels: centres of the labels of arrows.
        routes: points of each arrow, from its source to its target.
    """

    size: Size
    nodes: tuple[Point, ...]
    labels: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]


def layered(
    sizes: Sequence[Size], arrows: Sequence[tuple[int, int]], labels: Sequence[Size]
) -> Layout:
    """Lay out a graph.

    Args:
        sizes: width and height of each node.
        arrows: from node to node.
        labels: width and height of each arrow's label.
    """
    down = _turned(len(sizes), arrows)
    layer = _layers(len(sizes), down)
    widths = [width for width, _ in sizes]
    heights = [height for _, height in sizes]
    place = [2 * each for each in layer]
    # Between two layers of nodes lies one of labels; a long arrow bends once in every layer.
    chains: list[list[int]] = []
    named: list[int] = []
    for (source, target), (width, height) in zip(down, labels, strict=True):
        chain = [source]
        for row in range(place[source] + 1, place[target]):
            is_label = row == place[source] + 1
            chain.append(len(place))
            place.append(row)
            widths.append(width if is_label else _BEND_WIDTH)
            heights.append(height if is_label else 0.0)
        named.append(chain[1] if len(chain) > 1 else source)
        chains.append([*chain, target])
    rows: list[list[int]] = [[] for _ in range(max(place, default=0) + 1)]
    for node, row in enumerate(place):
        rows[row].append(node)
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for chain in chains:
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    _order(rows, above, below)
    across = _across(rows, widths, above, below)
    along, height = _along(rows, heights)
    points = [(across[node], along[place[node]]) for node in range(len(place))]
    routes = []
    for chain, (source, target), turned in zip(chains, arrows, down, strict=True):
        path = [points[node] for node in chain]
        routes.append(tuple(path if (source, target) == turned else reversed(path)))
    right = max((across[n] + widths[n] / 2 for n in range(len(place))), default=0.0)
    return Layout(
        (right, height),
        tuple(points[: len(sizes)]),
        tuple(points[node] for node in named),
        tuple(routes),
    )


def _turned(count: int, arrows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the arrows with those that close a cycle turned round."""
    after: dict[int, list[int]] = defaultdict(list)
    for source, target in arrows:
        after[source].append(target)
    state = [0] * count
    closing: set[tuple[int, int]] = set()
    for start in range(count):
        stack = [(start, iter(after[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if state[target] == 1:
                    closing.add((node, target))
                elif not state[target]:
                    state[target] = 1
                    stack.append((target, iter(after[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return [(t, s) if (s, t) in closing and s != t else (s, t) for s, t in arrows]


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return each node's layer: below all it depends on; sources just above what they feed."""
    after: dict[int, list[int]] = defaultdict(list)
    missing = [0] * count
    for source, target in arrows:
        if source != target:
            after[source].append(target)
            missing[target] += 1
    sources = [node for node in range(count) if not missing[node]]
    layer = [0] * count
    waiting = list(sources)
    while waiting:
        node = waiting.pop()
        for target in after[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            missing[target] -= 1
            if not missing[target]:
                waiting.append(target)
    for node in sources:
        if after[node]:
            layer[node] = min(layer[target] for target in after[node]) - 1
    return layer


def _order(rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]) -> None:
    """Sort each row by the mean position of the neighbours in the row before, up and down."""
    position = {node: float(index) for row in rows for index, node in enumerate(row)}
    for turn in range(_ORDER_ROUNDS):
        neighbours = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = {
                node: fmean(position[each] for each in neighbours[node])
                if neighbours[node]
                else position[node]
                for node in row
            }
            row.sort(key=lambda node, wanted=wanted: wanted[node])  # type: ignore[misc]
            for index, node in enumerate(row):
                position[node] = float(index)


def _across(
    rows: list[list[int]],
    widths: Sequence[float],
    above: dict[int, list[int]],
    below: dict[int, list[int]],
) -> dict[int, float]:
    across: dict[int, float] = {}
    for row in rows:
        edge = 0.0
        for node in row:
            across[node] = edge + widths[node] / 2
            edge += widths[node] + _GAP
    for turn in range(_PLACE_ROUNDS):
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = []
            for node in row:
                around = above[node] if turn % 2 == 0 else below[node]
                if turn >= _PLACE_ROUNDS - 2:
                    around = [*above[node], *below[node]]
                wanted.append(fmean(across[each] for each in around) if around else across[node])
            across |= zip(row, _spread(wanted, [widths[node] for node in row]), strict=True)
    left = min((x - widths[node] / 2 for node, x in across.items()), default=0.0)
    return {node: x - left for node, x in across.items()}


def _spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return the places nearest to the wanted ones (least squares) that keep order and gaps."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + _GAP)
    blocks: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, size = want - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean = (mean * size + before * more) / (size + more)
            size += more
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _along(rows: list[list[int]], heights: Sequence[float]) -> tuple[list[float], float]:
    """Return the y of each row, and the height of all."""
    along, edge = [], 0.0
    for row in rows:
        tallest = max((heights[node] for node in row), default=0.0)
        along.append(edge + tallest / 2)
        edge += tallest + _LAYER_GAP
    return along, edge - _LAYER_GAP

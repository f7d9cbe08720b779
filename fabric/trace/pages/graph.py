"""The graph of a program, coloured by utilisation: layers from left to right."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Final

from fabric.drawing.colours import shade
from fabric.telling.causes import SHOWN, STUCK, Cause
from fabric.trace.analysis.stalls import Accounts
from fabric.trace.pages.svg import element

__all__ = ["graph"]

_WIDTH, _HEIGHT = 178, 32
_COLUMN, _ROW = 222, 46
_LETTERS: Final = 25
_BOW: Final = 42
_FOLD_FROM: Final = 60
_SWEEPS: Final = 4


def graph(accounts: Accounts, stuck: set[int]) -> str:
    """Return the drawing; units in ``stuck`` are outlined, with the channels between them.

    In a large graph, units of one layer that were wired at one place are one box.
    """
    names = accounts.names
    units = len(names.units)
    layer = _layers(units, names.ends)
    groups = _groups(accounts, layer, stuck)
    box_of = {unit: number for number, group in enumerate(groups) for unit in group}
    ends: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (producer, consumer), name in zip(names.ends, names.channels, strict=True):
        ends[box_of[producer], box_of[consumer]].append(name)
    places = _places([layer[group[0]] for group in groups], list(ends))
    outlined = {number for number, group in enumerate(groups) if stuck.intersection(group)}
    lines = "".join(
        _edge(places[start], places[end], {start, end} <= outlined, between)
        for (start, end), between in ends.items()
    )
    boxes = "".join(
        _box(*places[number], accounts, group, number in outlined)
        for number, group in enumerate(groups)
    )
    width = max(x for x, _ in places) + _WIDTH + 12
    height = max(y for _, y in places) + _HEIGHT + 24
    drawing = element(
        "svg", lines + boxes, width=width, height=height, viewBox=f"0 0 {width} {height}"
    )
    return element("div", drawing, class_="scroll graph")


def _groups(accounts: Accounts, layer: list[int], stuck: set[int]) -> list[list[int]]:
    """Return the units of each box, in the order of their first ones."""
    units = range(len(layer))
    if len(units) < _FOLD_FROM:
        return [[unit] for unit in units]
    names = accounts.names
    found: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for unit in units:
        key = (layer[unit], names.places[unit], names.operators[unit], unit in stuck)
        found[key].append(unit)
    return list(found.values())


def _box(x: int, y: int, accounts: Accounts, group: list[int], stuck: bool) -> str:
    names = accounts.names
    stalls = [accounts.by_number[unit] for unit in group if unit in accounts.by_number]
    cycles = max(1, accounts.cycles * len(stalls))
    shares = {cause: sum(getattr(each, cause) for each in stalls) / cycles for cause in SHOWN}
    fill = shade(shares[Cause.BUSY])
    name = names.units[group[0]]
    if len(group) > 1:
        name = f"{names.operators[group[0]]} x {len(group):,}"
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 10]}…{name[-9:]}"
    told = ", ".join(f"{cause.label} {100 * share:.1f} %" for cause, share in shares.items())
    whole = names.units[group[0]] + (f" to {names.units[group[-1]]}" if len(group) > 1 else "")
    bars, left = "", 0.0
    for cause in SHOWN[:-1]:
        wide = shares[cause] * (_WIDTH - 12)
        bars += element(
            "rect", x=f"{x + 6 + left:.1f}", y=y + 23, width=f"{wide:.1f}", height=4,
            fill=cause.colour,
        )  # fmt: skip
        left += wide
    outline = {"stroke": STUCK, "stroke_width": 3} if stuck else {"stroke": "#9fb0c0"}
    return element(
        "g",
        element("title", escape(f"{whole} ({names.places[group[0]]}): {told}"))
        + element("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=5, fill=fill, **outline)
        + element("rect", x=x + 5, y=y + 22, width=_WIDTH - 10, height=6, fill="#fff", rx=2)
        + bars
        + element("text", escape(short), x=x + 8, y=y + 16, fill="#1c2733", font_size=11),
    )


def _edge(start: tuple[int, int], end: tuple[int, int], stuck: bool, between: list[str]) -> str:
    x0, y0 = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    x1, y1 = end[0], end[1] + _HEIGHT // 2
    reach = max(24, abs(x1 - x0) // 2)
    colour = STUCK if stuck else "#a9b7c4"
    width = 2.5 if stuck or len(between) > 1 else 1.2
    more = f" and {len(between) - 1:,} more" if len(between) > 1 else ""
    bow = _BOW if x1 - x0 > _COLUMN else 0  # around the boxes of the layers between
    path = f"M{x0} {y0}C{x0 + reach} {y0 + bow} {x1 - reach} {y1 + bow} {x1} {y1}"
    title = element("title", escape(between[0] + more))
    return element("path", title, d=path, fill="none", stroke=colour, stroke_width=width)


def _places(layer: list[int], ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the upper left corner of each box, near those it is joined to."""
    columns: dict[int, list[int]] = defaultdict(list)
    for box, number in enumerate(layer):
        columns[number].append(box)
    near: dict[int, list[int]] = defaultdict(list)
    for start, end in ends:
        near[start].append(end)
        near[end].append(start)
    height = max(map(len, columns.values()))
    row = {
        box: (height - len(column)) / 2 + number
        for column in columns.values()
        for number, box in enumerate(column)
    }
    for sweep in range(_SWEEPS):
        for number in sorted(columns, reverse=bool(sweep % 2)):
            column = columns[number]
            wanted = {
                box: sum(row[other] for other in near[box]) / max(1, len(near[box]))
                for box in column
            }
            column.sort(key=lambda box: (wanted[box], box))
            for position, box in enumerate(column):
                row[box] = (height - len(column)) / 2 + position
    return [(6 + number * _COLUMN, round(6 + row[box] * _ROW)) for box, number in enumerate(layer)]


def _layers(units: int, ends: list[tuple[int, int]]) -> list[int]:
    """Return the longest way from a source to each unit; edges that close a loop do not count."""
    after: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in ends:
        after[producer].append(consumer)
    sources = sorted(set(range(units)) - {consumer for _, consumer in ends})
    order = _forward([*sources, *range(units)], after)
    place = {unit: number for number, unit in enumerate(order)}
    layer = [0] * units
    for unit in order:
        for other in after[unit]:
            if place[other] > place[unit]:
                layer[other] = max(layer[other], layer[unit] + 1)
    # A source stands right before its first reader.
    for unit in sources:
        if after[unit]:
            layer[unit] = max(0, min(layer[other] for other in after[unit]) - 1)
    return layer


def _forward(roots: list[int], after: dict[int, list[int]]) -> list[int]:
    """Return all units, each before those that come after it, loops aside."""
    finished: list[int] = []
    seen: set[int] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(after[root]))]
        while stack:
            unit, following = stack[-1]
            found = next((each for each in following if each not in seen), None)
            if found is None:
                finished.append(unit)
                stack.pop()
            else:
                seen.add(found)
                stack.append((found, iter(after[found])))
    return finished[::-1]

"""The graph of a program, coloured by utilisation: layers from left to right."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Final

from fabric.trace.html.svg import COLOURS, TITLES, element, shade
from fabric.trace.stalls import COLUMNS, Accounts

__all__ = ["graph"]

_WIDTH, _HEIGHT = 178, 32
_COLUMN, _ROW = 222, 46
_LETTERS: Final = 25
_MOST: Final = 3_000
_SWEEPS: Final = 4


def graph(accounts: Accounts, stuck: set[int]) -> str:
    """Return the drawing; units in ``stuck`` are outlined, with the channels between them."""
    names = accounts.names
    if len(names.units) > _MOST:
        return element("p", f"{len(names.units):,} units are too many to draw.")
    places = _places(len(names.units), names.ends)
    stalls = {each.unit: each for each in accounts.units}
    lines = "".join(
        _edge(places[producer], places[consumer], {producer, consumer} <= stuck, name)
        for (producer, consumer), name in zip(names.ends, names.channels, strict=True)
    )
    boxes = []
    for unit, (x, y) in enumerate(places):
        found = stalls.get(unit)
        shares = {
            name: getattr(found, name) / accounts.cycles if found and accounts.cycles else 0.0
            for _, name in COLUMNS
        }
        boxes.append(_box(x, y, names.units[unit], names.places[unit], shares, unit in stuck))
    width = max(x for x, _ in places) + _WIDTH + 12
    height = max(y for _, y in places) + _HEIGHT + 12
    drawing = element(
        "svg", lines + "".join(boxes), width=width, height=height, viewBox=f"0 0 {width} {height}"
    )
    return element("div", drawing, class_="scroll graph")


def _box(x: int, y: int, name: str, place: str, shares: dict[str, float], stuck: bool) -> str:
    fill, text = shade(shares["busy"])
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 10]}…{name[-9:]}"
    told = ", ".join(f"{TITLES[state]} {100 * share:.1f} %" for state, share in shares.items())
    bars, left = "", 0.0
    for state in ("busy", "empty", "full", "hbm", "capacity"):
        wide = shares[state] * (_WIDTH - 12)
        bars += element(
            "rect", x=f"{x + 6 + left:.1f}", y=y + 23, width=f"{wide:.1f}", height=4,
            fill=COLOURS[state],
        )  # fmt: skip
        left += wide
    outline = {"stroke": "#b00020", "stroke_width": 3} if stuck else {"stroke": "#9fb0c0"}
    return element(
        "g",
        element("title", escape(f"{name} ({place}): {told}"))
        + element("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=5, fill=fill, **outline)
        + element("rect", x=x + 5, y=y + 22, width=_WIDTH - 10, height=6, fill="#fff", rx=2)
        + bars
        + element("text", escape(short), x=x + 8, y=y + 16, fill=text, font_size=11),
    )


def _edge(start: tuple[int, int], end: tuple[int, int], stuck: bool, name: str) -> str:
    x0, y0 = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    x1, y1 = end[0], end[1] + _HEIGHT // 2
    reach = max(24, abs(x1 - x0) // 2)
    colour, width = ("#b00020", 2.5) if stuck else ("#a9b7c4", 1.2)
    path = f"M{x0} {y0}C{x0 + reach} {y0} {x1 - reach} {y1} {x1} {y1}"
    return element(
        "path", element("title", escape(name)), d=path, fill="none", stroke=colour,
        stroke_width=width,
    )  # fmt: skip


def _places(units: int, ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the upper left corner of each unit's box."""
    layer = _layers(units, ends)
    columns: dict[int, list[int]] = defaultdict(list)
    for unit in range(units):
        columns[layer[unit]].append(unit)
    near: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in ends:
        near[producer].append(consumer)
        near[consumer].append(producer)
    height = max(map(len, columns.values()))
    row = {
        unit: (height - len(column)) / 2 + number
        for column in columns.values()
        for number, unit in enumerate(column)
    }
    for sweep in range(_SWEEPS):
        order = sorted(columns, reverse=bool(sweep % 2))
        for each in order:
            column = columns[each]
            wanted = {
                unit: sum(row[other] for other in near[unit]) / len(near[unit])
                if near[unit]
                else row[unit]
                for unit in column
            }
            column.sort(key=lambda unit: (wanted[unit], unit))
            for number, unit in enumerate(column):
                row[unit] = (height - len(column)) / 2 + number
    return [(6 + layer[unit] * _COLUMN, round(6 + row[unit] * _ROW)) for unit in range(units)]


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

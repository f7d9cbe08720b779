"""Boxes, texts and lines of a picture, read from its SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

SVG: Final = "{http://www.w3.org/2000/svg}"
POINTS_PER_CURVE: Final = 24
TOUCHING: Final = 1.5
"""Lines end at the edges of boxes, and coordinates are rounded."""

Point: TypeAlias = tuple[float, float]
Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Drawn:
    boxes: dict[str, Rectangle]
    texts: list[tuple[str, Rectangle]]
    """Titles and labels of arrows."""
    inside: list[tuple[str, Rectangle]]
    """Texts of boxes."""
    lines: list[list[Point]]
    """A line to a label and the line from it count as two."""
    tips: int
    size: Point


def drawn(document: str) -> Drawn:
    root = ET.fromstring(document)
    (graph,) = root.findall(f"{SVG}g")
    texts, boxes = [*graph.findall(f"{SVG}text")], dict[str, Rectangle]()
    inside, lines, tips = [], [], 0
    for group in graph.findall(f"{SVG}g"):
        kind = group.attrib["class"].split()
        paths = [_points(path.attrib["d"]) for path in group.iter(f"{SVG}path")]
        if "arrow" in kind:
            lines += paths
            tips += len([*group.iter(f"{SVG}polygon")])
        elif "label" in kind:
            texts += group.iter(f"{SVG}text")
        else:
            (title,) = group.iter(f"{SVG}title")
            boxes[f"{len(boxes)} {title.text}"] = _around([*chain.from_iterable(paths)])
            inside += [_room(text) for text in group.iter(f"{SVG}text")]
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return Drawn(boxes, [*map(_room, texts)], inside, lines, tips, (width, height))


def sampled(curve: Sequence[Point]) -> list[Point]:
    points = [curve[0]]
    for start in range(0, len(curve) - 1, 3):
        a, b, c, d = curve[start : start + 4]
        for step in range(1, POINTS_PER_CURVE + 1):
            t = step / POINTS_PER_CURVE
            u = 1 - t
            weights = u**3, 3 * u * u * t, 3 * u * t * t, t**3
            x, y = (
                sum(w * p[axis] for w, p in zip(weights, (a, b, c, d), strict=True))
                for axis in (0, 1)
            )
            points.append((x, y))
    return points


def clashes(drawn: Drawn) -> Iterator[str]:
    places = [*drawn.boxes.items(), *drawn.texts]
    for (one, first), (other, second) in combinations(places, 2):
        if _overlap(first, second):
            yield f"{one} on {other}"
    for line in drawn.lines:
        points = sampled(line)
        for name, place in places:
            if _through(points, place):
                yield f"a line from {line[0]} to {line[-1]} through {name}"
    for text, (left, top, right, bottom) in drawn.inside:
        if not any(
            box[0] < left and box[1] < top and right < box[2] and bottom < box[3]
            for box in drawn.boxes.values()
        ):
            yield f"{text} is wider than its box"


def _room(text: ET.Element) -> tuple[str, Rectangle]:
    words = text.text or ""
    x, y, size = (float(text.attrib[name]) for name in ("x", "y", "font-size"))
    width = 0.6 * size * len(words)
    left = x if text.attrib["text-anchor"] == "start" else x - width / 2
    return words, (left, y - 0.7 * size, left + width, y + 0.15 * size)


def _points(data: str) -> list[Point]:
    numbers = list(map(float, re.findall(r"-?[\d.]+", data)))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _around(points: Sequence[Point]) -> Rectangle:
    across, down = zip(*points, strict=True)
    return min(across), min(down), max(across), max(down)


def _overlap(first: Rectangle, second: Rectangle) -> bool:
    return (
        first[0] + TOUCHING < second[2]
        and second[0] + TOUCHING < first[2]
        and first[1] + TOUCHING < second[3]
        and second[1] + TOUCHING < first[3]
    )


def _through(points: Sequence[Point], place: Rectangle) -> bool:
    left, top, right, bottom = place
    return any(
        left + TOUCHING < x < right - TOUCHING and top + TOUCHING < y < bottom - TOUCHING
        for x, y in points
    )

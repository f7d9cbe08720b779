"""Boxes, texts and lines of a picture, read from its SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

SVG: Final = "{http://www.w3.org/2000/svg}"
POINTS_PER_CURVE: Final = 24
TOUCHING: Final = 1.0
"""Lines end at the edges of boxes, and places are rounded."""

Point: TypeAlias = tuple[float, float]
Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Drawn:
    boxes: dict[str, Rectangle]
    texts: list[tuple[str, Rectangle]]
    lines: list[list[list[Point]]]
    size: Point


def drawn(document: str) -> Drawn:
    root = ET.fromstring(document)
    (inner,) = root.findall(f"{SVG}g")
    boxes = {}
    for number, group in enumerate(inner.findall(f"{SVG}g")):
        title, *_ = (each.text for each in group.iter(f"{SVG}title"))
        # The last of the outlines: several operators have a second one behind.
        *_, outline = (each for each in group.iter(f"{SVG}rect") if each.get("rx"))
        left, top, width, height = (
            float(outline.attrib[name]) for name in ("x", "y", "width", "height")
        )
        boxes[f"{number} {title}"] = left, top, left + width, top + height
    texts = [(text.text or "", _around(text)) for text in inner.findall(f"{SVG}text")]
    lines = [list(_curves(path.attrib["d"])) for path in inner.findall(f"{SVG}path")]
    return Drawn(boxes, texts, lines, (float(root.attrib["width"]), float(root.attrib["height"])))


def sampled(curve: Sequence[Point]) -> list[Point]:
    found = [curve[0]]
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
            found.append((x, y))
    return found


def clashes(found: Drawn) -> Iterator[str]:
    places = [*found.boxes.items(), *found.texts]
    for (one, first), (other, second) in combinations(places, 2):
        if _overlap(first, second):
            yield f"{one} on {other}"
    for line in found.lines:
        points = [sampled(curve) for curve in line]
        for name, place in places:
            if any(_through(each, place) for each in points):
                yield f"a line from {line[0][0]} to {line[-1][-1]} through {name}"


def _around(text: ET.Element) -> Rectangle:
    x, y, size = (float(text.attrib[name]) for name in ("x", "y", "font-size"))
    half = 0.6 * size * len(text.text or "") / 2
    return x - half, y - 0.7 * size, x + half, y + 0.15 * size


def _curves(data: str) -> Iterator[list[Point]]:
    for part in filter(None, data.split("M")):
        numbers = list(map(float, re.findall(r"-?[\d.]+", part)))
        yield list(zip(numbers[::2], numbers[1::2], strict=True))


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

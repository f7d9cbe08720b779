"""Pictures of programs as SVG, and in the languages of Graphviz and Mermaid."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from fabric.analysis.drawing.lines import (
    BOX,
    FAINT,
    INK,
    KIND,
    LINE,
    PAPER,
    REST,
    Layout,
    Point,
    Size,
    arrow,
    document,
    extent,
    layered,
    shortened,
    tint,
    words,
)
from fabric.analysis.drawing.picture import Arrow, Box, Picture, Shares
from fabric.messages.causes import SHOWN, Cause

_TITLE: Final = 12

_SMALL: Final = 10

_LABEL_LETTERS: Final = 28

_AROUND: Final = 9.0

_BAR_HEIGHT: Final = 7.0

_BEHIND: Final = 4.0

_TIMES: Final = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}"

_OF: Final = "of\N{NO-BREAK SPACE}"


class Placed(NamedTuple):
    """A picture with the positions of its boxes and labels."""

    sizes: list[Size]
    texts: list[tuple[list[str], list[str]]]
    labels: list[list[str]]
    layout: Layout


def placed(picture: Picture) -> Placed:
    """Lay ``picture`` out."""
    labels = [_label(each, picture.boxes[each.source]) for each in picture.arrows]
    sizes = [_size(box) for box in picture.boxes]
    layout = layered(
        sizes,
        [(each.source, each.target) for each in picture.arrows],
        [_room(lines) for lines in labels],
    )
    return Placed(sizes, [_texts(box) for box in picture.boxes], labels, layout)


def svg(picture: Picture) -> str:
    """Return ``picture`` as an SVG document."""
    _, _, labels, layout = placed(picture)

    def body() -> Iterator[str]:
        for route in layout.routes:
            yield arrow(route, LINE)
        for lines, place in zip(labels, layout.labels, strict=True):
            if place is not None:
                yield from words(lines, place, _SMALL, FAINT)
        for box, place in zip(picture.boxes, layout.nodes, strict=True):
            yield from _box(box, place)

    return document(picture.title, _legend(picture), layout.size, body())


def _legend(picture: Picture) -> list[tuple[str, str]]:
    if picture.measured:
        return [(_fill(cause), cause.label) for cause in SHOWN]
    return [(paint.fill, f"{kind} unit") for kind, paint in BOX.items()]


def _fill(cause: Cause) -> str:
    return REST.fill if cause is Cause.IDLE else f'fill="{cause.colour}"'


def _label(arrow: Arrow, source: Box) -> list[str]:
    if source.copies:
        return []
    shape, _, value = arrow.label.partition(" of ")
    value = value.replace(" ", "\N{NO-BREAK SPACE}")
    many = f"{_TIMES}{arrow.count}" if arrow.count > 1 else ""
    return textwrap.wrap(f"{shape} {_OF}{value}{many}", _LABEL_LETTERS, break_long_words=False)


def _room(lines: Sequence[str]) -> Size | None:
    if not lines:
        return None
    width, height = extent(lines, _SMALL)
    return width + 6, height + 2


def _title(box: Box) -> str:
    title = shortened(box.title)
    return title if box.count == 1 else f"{title}  \N{MULTIPLICATION SIGN}{box.count}"


def _texts(box: Box) -> tuple[list[str], list[str]]:
    if box.copies:
        return [], [_title(box)]
    return [_title(box)], [f"{box.operator}  {box.place}"]


def _size(box: Box) -> Size:
    large, small = _texts(box)
    (wide, high), (width, height) = extent(large, _TITLE), extent(small, _SMALL)
    bar = _BAR_HEIGHT + 3 if box.shares is not None else 0
    return max(wide, width) + 2 * _AROUND, high + height + 10 + bar


def _box(box: Box, centre: Point) -> Iterator[str]:
    (x, y), (width, height) = centre, _size(box)
    left, top = x - width / 2, y - height / 2
    large, small = _texts(box)
    edge = LINE if box.shares is not None else KIND[box.kind]
    fill = PAPER if box.shares is not None else BOX[box.kind]

    def shape(shift: float) -> str:
        return (
            f'<rect x="{left + shift:.1f}" y="{top + shift:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="5"'
        )

    yield f"<g><title>{escape(box.title)}</title>"
    for shift in (_BEHIND, 0.0) if box.count > 1 else (0.0,):
        yield f"{shape(shift)} {fill.fill}/>"
        yield f'{shape(shift)} fill="none" {edge.stroke} stroke-width="1.2"/>'
    if box.shares is not None:
        cause, strength = tint(box.shares)
        yield f'{shape(0)} fill="{cause.colour}" fill-opacity="{strength:.2f}"/>'
    line = top + 5 + extent(large, _TITLE)[1] / 2
    yield from words(large, (x, line), _TITLE, INK, bold=True)
    line += (extent(large, _TITLE)[1] + extent(small, _SMALL)[1]) / 2
    yield from words(small, (x, line), _SMALL, FAINT if large and box.shares is None else INK)
    if box.shares is not None:
        bar = left + _AROUND, top + height - _BAR_HEIGHT - 4, width - 2 * _AROUND
        yield from _bar(box.shares, *bar)
    yield "</g>"


def _bar(shares: Shares, left: float, top: float, width: float) -> Iterator[str]:
    for cause in SHOWN:
        part = width * shares[cause]
        percent = f"{cause.label}: {100 * shares[cause]:.1f} %"
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{part:.1f}" '
            f'height="{_BAR_HEIGHT}" {_fill(cause)}><title>{percent}</title></rect>'
        )
        left += part


def dot(picture: Picture) -> str:
    """Return ``picture`` for Graphviz."""
    return "\n".join(_dot(picture)) + "\n"


def mermaid(picture: Picture) -> str:
    """Return ``picture`` for Mermaid, as Markdown pages show it."""
    return "\n".join(_mermaid(picture)) + "\n"


def _dot(picture: Picture) -> Iterator[str]:
    yield f"digraph {_quoted(picture.title)} {{"
    yield '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];'
    yield '  edge [fontname="monospace", fontsize=9];'
    for number, box in enumerate(picture.boxes):
        label = "\\n".join(map(escaped, _lines(box)))
        yield f'  n{number} [label="{label}", fillcolor="{BOX[box.kind].light}"];'
    for each in picture.arrows:
        many = f" x{each.count}" if each.count > 1 else ""
        yield f"  n{each.source} -> n{each.target} [label={_quoted(each.label + many)}];"
    yield "}"


def _mermaid(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    for number, box in enumerate(picture.boxes):
        yield f'  n{number}["{"<br/>".join(map(_entities, _lines(box)))}"]:::{box.kind}'
    for each in picture.arrows:
        many = f" x{each.count}" if each.count > 1 else ""
        yield f'  n{each.source} -->|"{_entities(each.label + many)}"| n{each.target}'
    for kind, paint in BOX.items():
        yield f"  classDef {kind} fill:{paint.light}"


def _lines(box: Box) -> list[str]:
    many = f" x{box.count}" if box.count > 1 else ""
    lines = [box.title + many, f"{box.operator} {box.place}"]
    if box.shares is not None:
        lines.append(f"{Cause.BUSY.label} {100 * box.shares[Cause.BUSY]:.1f} %")
    return lines


def _quoted(text: str) -> str:
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    """Return ``text`` as a part of a DOT string."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _entities(text: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter in " _.:,/*+-" else f"#{ord(letter)};"
        for letter in text
    )

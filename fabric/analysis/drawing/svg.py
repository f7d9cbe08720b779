"""Pictures of programs as SVG, and in the languages of Graphviz and Mermaid."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Final, NamedTuple, TypeAlias

from fabric.analysis.drawing.graphviz import rendered
from fabric.analysis.drawing.paper import (
    BOX,
    EDGE,
    FAINT,
    INK,
    LINE,
    PAPER,
    SMALL,
    extent,
    framed,
    shortened,
    tint,
)
from fabric.analysis.drawing.picture import Arrow, Box, Picture, Shares
from fabric.messages.causes import SHOWN, STUCK, Cause

_TITLE: Final = 15
_NAME: Final = 12
_LABEL_CHARACTERS: Final = 28
_GLUE: Final = "\N{NO-BREAK SPACE}"
_BAR_HEIGHT: Final = 7
_SWATCH: Final = 6

_TABLE: Final = '<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0">'

_ROOM: Final = re.compile(
    r'<polygon fill="#(\w{6})" fill-opacity="0.0039\d*" stroke="\w+" '
    r'points="(\S+),(\S+) \S+ (\S+),(\S+) [^"]*"/>'
)
"""The rectangle that Graphviz draws in place of a text; its colour is the text's number."""


class _Text(NamedTuple):
    text: str
    size: int = SMALL
    colour: str = INK
    bold: bool = False
    start: bool = False
    """The text begins at the left of its rectangle; otherwise it is in the middle."""


_Cell: TypeAlias = Callable[[_Text], str]
"""A function that returns the cell of a text in an HTML-like label."""


def dot(picture: Picture) -> str:
    return "\n".join(_dot(picture, _written, label_nodes=False)) + "\n"


def svg(picture: Picture) -> str:
    """Return ``picture`` as an SVG document.

    Graphviz draws rectangles in place of texts, so the host's fonts do not change the layout.
    """
    texts: list[_Text] = []

    def room(text: _Text) -> str:
        texts.append(text)
        width, height = extent([text.text], text.size)
        return (
            f'<TD FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="{height:.0f}" '
            f'BGCOLOR="#{len(texts) - 1:06x}01"></TD>'
        )

    def filled(rectangle: re.Match[str]) -> str:
        number, *corners = rectangle.groups()
        left, bottom, right, top = map(float, corners)
        text = texts[int(number, 16)]
        x, anchor = (left, "start") if text.start else ((left + right) / 2, "middle")
        weight = ' font-weight="600"' if text.bold else ""
        return (
            f'<text x="{x:.1f}" y="{(top + bottom) / 2 + 0.35 * text.size:.1f}" '
            f'text-anchor="{anchor}" font-size="{text.size}"{weight} fill="{text.colour}">'
            f"{escape(text.text)}</text>"
        )

    size, body = rendered("\n".join(_dot(picture, room, label_nodes=True)))
    return framed(picture.title, size, _ROOM.sub(filled, body))


def _written(text: _Text) -> str:
    words = escape(text.text)
    bold = f"<B>{words}</B>" if text.bold else words
    side = ' ALIGN="LEFT"' if text.start else ""
    return f'<TD{side}><FONT POINT-SIZE="{text.size}" COLOR="{text.colour}">{bold}</FONT></TD>'


def _dot(picture: Picture, cell: _Cell, *, label_nodes: bool) -> Iterator[str]:
    # A label that is a node is laid out between the ends of its arrow, so that no line crosses it.
    yield f"digraph {_quoted(picture.title)} {{"
    yield f'  graph [bgcolor="{PAPER}", pad=0.15, nodesep=0.2, ranksep=0.2, fontname=Courier];'
    if picture.title:
        yield f"  graph [labelloc=t, labeljust=l, label=<{_heading(picture, cell)}>];"
    yield (
        '  node [fontname=Courier, shape=box, style="rounded,filled", width=0, height=0, '
        'margin="0.12,0.045"];'
    )
    yield "  edge [arrowsize=0.6];"
    for number, box in enumerate(picture.boxes):
        yield f"  n{number} [{_look(box, number)}, label=<{_label(box, cell)}>];"
    for number, arrow in enumerate(picture.arrows):
        lines = _lines(arrow, picture.boxes[arrow.source])
        yield from _line(arrow, number, lines, cell, label_nodes=label_nodes)
    yield "}"


def _heading(picture: Picture, cell: _Cell) -> str:
    title = cell(_Text(picture.title, _TITLE, bold=True, start=True))
    legend = (
        (cell(_Text("\N{BLACK SQUARE}", _TITLE, colour)) if colour else "")
        + cell(_Text(f"{_GLUE}{name}   ", colour=FAINT, start=True))
        for colour, name in picture.legend or _legend(picture)
    )
    return _rows([title, _inner(legend), '<TD HEIGHT="8"></TD>'])


def _legend(picture: Picture) -> list[tuple[str, str]]:
    if any(box.shares is not None for box in picture.boxes):
        return [(cause.colour, cause.label) for cause in SHOWN]
    return [(colour, f"{kind} unit") for kind, colour in EDGE.items()]


def _rows(cells: Iterable[str]) -> str:
    return f"{_TABLE}{''.join(f'<TR>{cell}</TR>' for cell in cells)}</TABLE>"


def _inner(cells: Iterable[str], attributes: str = "") -> str:
    return f'<TD ALIGN="LEFT"{attributes}>{_TABLE}<TR>{"".join(cells)}</TR></TABLE></TD>'


def _look(box: Box, number: int) -> str:
    edge, fill = EDGE.get(box.kind, LINE), BOX.get(box.kind, PAPER)
    if box.shares is not None:
        edge, fill = LINE, tint(box.shares)
    shares = (box.shares or {}).items()
    note = box.note or ", ".join(f"{cause.label} {100 * share:.1f} %" for cause, share in shares)
    tooltip = f"{box.title}: {note}" if note else box.title
    return (
        f'class="box box{number}", tooltip={_quoted(escape(tooltip))}, '
        f'fillcolor="{fill}", color="{STUCK if box.stuck else edge}"'
        + (", penwidth=2" if box.stuck else "")
        + (", peripheries=2" if box.count > 1 else "")
    )


def _texts(box: Box) -> Iterator[_Text]:
    title = shortened(box.title)
    if box.count > 1:
        title += f"  \N{MULTIPLICATION SIGN}{box.count}"
    if box.copies:
        yield _Text(title)
        return
    yield _Text(title, _NAME, bold=True)
    small = [box.state] if box.state else []
    for text in (*small, shortened(f"{box.operator}  {box.place}")):
        yield _Text(text, colour=FAINT if box.shares is None else INK)


def _label(box: Box, cell: _Cell) -> str:
    texts = list(_texts(box))
    rows = [*map(cell, texts)]
    if box.shares is not None:
        width = round(max(extent([text.text], text.size)[0] for text in texts))
        rows.append(_inner(_bar(box.shares, width), ' CELLPADDING="3"'))
    if box.cause is None:
        return _rows(rows)
    swatch = f'<TD WIDTH="{_SWATCH}" BGCOLOR="{box.cause.colour}"></TD><TD WIDTH="{_SWATCH}"></TD>'
    return f"{_TABLE}<TR>{swatch}<TD>{_rows(rows)}</TD></TR></TABLE>"


def _bar(shares: Shares, width: int) -> Iterator[str]:
    left, whole = 0, 0.0
    for cause in SHOWN:
        whole += shares[cause]
        right = round(width * whole)
        if right > left:
            yield (
                f'<TD FIXEDSIZE="TRUE" WIDTH="{right - left}" HEIGHT="{_BAR_HEIGHT}" '
                f'BGCOLOR="{cause.colour}"></TD>'
            )
        left = right


def _lines(arrow: Arrow, source: Box) -> list[str]:
    if source.copies:
        return []
    many = f"{_GLUE}\N{MULTIPLICATION SIGN}{arrow.count}" if arrow.count > 1 else ""
    return [
        line
        for text in (arrow.label.replace(" of ", f" of{_GLUE}") + many).splitlines()
        for line in textwrap.wrap(
            text, _LABEL_CHARACTERS, break_long_words=False, break_on_hyphens=False
        )
    ]


def _line(
    arrow: Arrow, number: int, lines: list[str], cell: _Cell, *, label_nodes: bool
) -> Iterator[str]:
    colour, width = (STUCK, 1.6) if arrow.stuck else (LINE, 1.1)
    look = f'class="arrow arrow{number}", color="{colour}", penwidth={width}'
    if arrow.note:
        look += f", tooltip={_quoted(escape(arrow.note))}"
    if not lines:
        yield f"  n{arrow.source} -> n{arrow.target} [{look}];"
        return
    label = _rows(cell(_Text(text, colour=INK if arrow.stuck else FAINT)) for text in lines)
    if not label_nodes:
        yield f"  n{arrow.source} -> n{arrow.target} [{look}, label=<{label}>];"
        return
    yield (
        f'  l{number} [shape=none, style="", margin="0.04,0.015", class="label arrow{number}", '
        f"label=<{label}>];"
    )
    yield f"  n{arrow.source} -> l{number} [{look}, dir=none];"
    yield f"  l{number} -> n{arrow.target} [{look}];"


def mermaid(picture: Picture) -> str:
    """Return ``picture`` for Mermaid, as Markdown pages show it."""
    return "\n".join(_mermaid(picture)) + "\n"


def _mermaid(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    for number, box in enumerate(picture.boxes):
        many = f" x{box.count}" if box.count > 1 else ""
        lines = [box.title + many, f"{box.operator} {box.place}"]
        if box.shares is not None:
            lines.append(f"{Cause.BUSY.label} {100 * box.shares[Cause.BUSY]:.1f} %")
        yield f'  n{number}["{"<br/>".join(map(_entities, lines))}"]:::{box.kind}'
    for arrow in picture.arrows:
        many = f" x{arrow.count}" if arrow.count > 1 else ""
        yield f'  n{arrow.source} -->|"{_entities(arrow.label + many)}"| n{arrow.target}'
    for kind, colour in BOX.items():
        yield f"  classDef {kind} fill:{colour}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _entities(text: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter in " _.:,/*+-" else f"#{ord(letter)};"
        for letter in text
    )

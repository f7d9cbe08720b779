"""Pictures in the languages of Graphviz and Mermaid."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.drawing.colours import BOX
from fabric.drawing.picture import Box, Picture
from fabric.telling.causes import Cause

__all__ = ["dot", "escaped", "mermaid"]


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
    for arrow in picture.arrows:
        many = f" x{arrow.count}" if arrow.count > 1 else ""
        yield f"  n{arrow.source} -> n{arrow.target} [label={_quoted(arrow.label + many)}];"
    yield "}"


def _mermaid(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    for number, box in enumerate(picture.boxes):
        yield f'  n{number}["{"<br/>".join(map(_entities, _lines(box)))}"]:::{box.kind}'
    for arrow in picture.arrows:
        many = f" x{arrow.count}" if arrow.count > 1 else ""
        yield f'  n{arrow.source} -->|"{_entities(arrow.label + many)}"| n{arrow.target}'
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
    """Mermaid reads brackets and the like as its own unless they are written as entities."""
    return "".join(
        letter if letter.isalnum() or letter in " _.:,/*+-" else f"#{ord(letter)};"
        for letter in text
    )

"""The picture of ARCHITECTURE.md: the wings of the code and which of them import which.

``python -m tests.rooms`` draws it anew.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from typing import Final

import networkx as nx

from fabric.analysis.drawing.lines import Curve, Layout, layered
from tests.circles import imports_under

__all__ = ["PICTURE", "picture", "wings"]

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "ARCHITECTURE.svg"

_ABOVE: Final = ("programs", "operators")
_FACADE: Final = "fabric"
_LETTERS: Final = 46
_TITLE, _SMALL = 8.4, 6.1
_MARGIN: Final = 16.0
_STYLE: Final = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2733;"
    "text-anchor:middle}.t{font-size:14px;font-weight:600}.s{font-size:10px;fill:#5b6875}"
    "path{fill:none;stroke:#7d8a97;stroke-width:1.2}"
)


def wings() -> dict[str, set[str]]:
    """Return for each wing those it imports: folders of ``fabric``, and what stands above it.

    Imports that go up, which the layers of ``pyproject.toml`` name, are left out.
    """
    found: dict[str, set[str]] = {}
    imports = imports_under(ROOT, (_FACADE, *_ABOVE))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wings, _ = settings["tool"]["importlinter"]["contracts"][-2:]
    upward: list[str] = wings["ignore_imports"]
    for module, others in imports.items():
        if (wing := _wing(module)) is not None:
            found.setdefault(wing, set()).update(
                other
                for each in others
                if (other := _wing(each)) not in (None, wing)
                and not any(fnmatchcase(f"{module} -> {each}", known) for known in upward)
            )
    return found


def _wing(module: str) -> str | None:
    """Return the wing of a module, the facade for itself; None for what stands beside that."""
    package, *inside = module.split(".")
    if package in _ABOVE or not inside:
        return package
    return inside[0] if (ROOT / package / inside[0]).is_dir() else None


def picture(imports: Mapping[str, set[str]]) -> str:
    """Return ``imports`` as SVG, without lines that follow from others."""
    graph = nx.DiGraph([(wing, other) for wing, others in imports.items() for other in others])
    names = sorted(graph)
    arrows = sorted(
        (names.index(wing), names.index(other))
        for wing, other in nx.transitive_reduction(graph).edges
    )
    told = [textwrap.wrap(_told(name), _LETTERS) for name in names]
    sizes = [
        (
            18 + max(_TITLE * len(name), *(_SMALL * len(line) for line in lines), 0.0),
            28.0 + 13 * len(lines),
        )
        for name, lines in zip(names, told, strict=True)
    ]
    layout = layered(sizes, arrows, [None] * len(arrows))
    return "\n".join(_document(names, told, sizes, layout)) + "\n"


def _told(wing: str) -> str:
    """Return what a wing says of itself."""
    if wing == "programs":
        return "Programs that run, hardware files and data."
    file = ROOT / ("" if wing in (*_ABOVE, _FACADE) else _FACADE) / wing / "__init__.py"
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]


def _document(
    names: list[str], told: list[list[str]], sizes: list[tuple[float, float]], layout: Layout
) -> Iterator[str]:
    width, height = (side + 2 * _MARGIN for side in layout.size)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    yield f"<title>Wings: lines go down to what a wing imports</title><style>{_STYLE}</style>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    yield f'<g transform="translate({_MARGIN} {_MARGIN})">'
    for route in layout.routes:
        yield f'<path d="{_line(route)}"/>'
    for name, lines, (wide, high), (x, y) in zip(names, told, sizes, layout.nodes, strict=True):
        top = y - high / 2
        fill = "#dbe9fb" if name in (*_ABOVE, _FACADE) else "#f4f7fa"
        yield (
            f'<rect x="{x - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" '
            f'rx="5" fill="{fill}" stroke="#7d8a97"/>'
        )
        yield f'<text class="t" x="{x:.1f}" y="{top + 18:.1f}">{escape(name)}</text>'
        for number, line in enumerate(lines):
            yield (
                f'<text class="s" x="{x:.1f}" y="{top + 33 + 13 * number:.1f}">{escape(line)}'
                "</text>"
            )
    yield "</g></svg>"


def _line(route: tuple[Curve, ...]) -> str:
    """Return a curve as the data of a path."""
    ((start, *rest),) = route
    points = " ".join(f"{x:.1f} {y:.1f}" for x, y in rest)
    return f"M{start[0]:.1f} {start[1]:.1f}C{points}"


if __name__ == "__main__":
    PICTURE.write_text(picture(wings()), encoding="utf-8")

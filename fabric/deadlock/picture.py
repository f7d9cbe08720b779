"""Pictures of a deadlock: who waits for whom, the loops in red, for Graphviz and as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from fabric.deadlock.document import BlockedUnit, DeadlockReport
from fabric.telling.causes import STUCK, Cause, Operation

__all__ = ["dot", "svg"]

_BEHIND_SHOWN: Final = 200
"""Units behind the loops that are drawn."""

_BOX: Final = (220, 40)
_GAP: Final = 20
_TOP: Final = 60
_ROW_WIDTH: Final = 1_200
"""Loops, and the units behind them, are set in rows about this wide."""

_GREY: Final = "#666666"
_CAPTION: Final = "red: a loop; grey: behind it; an arrow goes from who waits to whom it waits for"
_CAUSES: Final = (Cause.EMPTY, Cause.FULL, Cause.CAPACITY)
"""What units in a loop wait for."""
_SWATCH: Final = 8


def dot(report: DeadlockReport) -> str:
    """Return the waits as a Graphviz digraph."""
    lines = ["digraph deadlock {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    for loop in report.loops:
        lines += [
            f'  "{_quoted(unit.unit)}" [color="{STUCK}", label="{_label(unit)}"];'
            for unit in loop.units
        ]
    lines += [f'  "{_quoted(unit.unit)}" [label="{_label(unit)}"];' for unit in _behind(report)]
    lines += [
        f'  "{_quoted(unit.unit)}" -> "{_quoted(peer)}" [color="{STUCK if core else _GREY}"];'
        for unit, peer, core in _arrows(report)
    ]
    return "\n".join([*lines, "}", ""])


def svg(report: DeadlockReport) -> str:
    """Return the loops as rings of boxes, the units behind them in rows below."""
    places, width, height = _places(report)
    box_width, box_height = _BOX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11">',
        f"<title>{escape(report.summary)}</title>",
        *(
            f'<defs><marker id="tip{colour[1:]}" viewBox="0 0 8 8" refX="8" refY="4" '
            f'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" '
            f'fill="{colour}"/></marker></defs>'
            for colour in (STUCK, _GREY)
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_GAP}" y="20" fill="{_GREY}">{_CAPTION}</text>',
        *_legend(),
    ]
    for unit, peer, core in _arrows(report):
        if peer in places:
            (x1, y1), (x2, y2) = _ends(places[unit.unit], places[peer])
            colour = STUCK if core else _GREY
            parts.append(
                f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
                f'stroke="{colour}" marker-end="url(#tip{colour[1:]})"/>'
            )
    core_names = {unit.unit for loop in report.loops for unit in loop.units}
    shown = [*(unit for loop in report.loops for unit in loop.units), *_behind(report)]
    for unit in shown:
        x, y = places[unit.unit]
        colour = STUCK if unit.unit in core_names else _GREY
        parts.append(
            f"<g><title>{escape(unit.unit)}: needs {escape(unit.needs)}</title>"
            f'<rect x="{x - box_width / 2:.0f}" y="{y - box_height / 2:.0f}" width="{box_width}" '
            f'height="{box_height}" fill="white" stroke="{colour}"/>'
            f'<text x="{x:.0f}" y="{y - 4:.0f}" text-anchor="middle"{_squeezed(unit.unit)}>'
            f"{escape(unit.unit)}</text>"
            f'<text x="{x:.0f}" y="{y + 12:.0f}" text-anchor="middle" fill="{colour}">'
            f"{escape(_state(unit))}</text>{_swatch(unit, x, y)}</g>"
        )
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterator[str]:
    """Yield the colours of what units wait for."""
    for number, cause in enumerate(_CAUSES):
        x = _GAP + 90 * number
        yield (
            f'<rect x="{x}" y="32" width="{_SWATCH}" height="{_SWATCH}" fill="{cause.colour}"/>'
            f'<text x="{x + _SWATCH + 6}" y="40" fill="{_GREY}">{cause.label}</text>'
        )


def _swatch(unit: BlockedUnit, x: float, y: float) -> str:
    """Return the edge of a box in the colour of what its unit waits for."""
    cause = Operation(unit.operation).cause
    if cause is None:
        return ""
    width, height = _BOX
    return (
        f'<rect x="{x - width / 2 + 1:.0f}" y="{y - height / 2 + 1:.0f}" width="{_SWATCH - 2}" '
        f'height="{height - 2}" fill="{cause.colour}"/>'
    )


def _places(report: DeadlockReport) -> tuple[dict[str, tuple[float, float]], int, int]:
    """Place the middle of every box; return places, width and height of the picture."""
    box_width, box_height = _BOX
    places: dict[str, tuple[float, float]] = {}
    left, top, bottom, right = float(_GAP), float(_TOP), float(_TOP), 0.0
    for loop in report.loops:
        count = len(loop.units)
        radius = 70.0 * (count - 1) if count < 3 else max(140.0, count * (box_width + _GAP) / 6)
        if left > _GAP and left + 2 * radius + box_width > _ROW_WIDTH:
            left, top = float(_GAP), bottom + _GAP
        middle = left + radius + box_width / 2, top + radius + box_height / 2
        for number, unit in enumerate(loop.units):
            angle = 2 * math.pi * number / count
            places[unit.unit] = (
                middle[0] + radius * math.sin(angle),
                middle[1] - radius * math.cos(angle),
            )
        left += 2 * radius + box_width + 2 * _GAP
        right = max(right, left - _GAP)
        bottom = max(bottom, middle[1] + radius + box_height / 2)
    behind = _behind(report)
    columns = max(3, round(max(right, _ROW_WIDTH)) // (box_width + _GAP))
    for number, unit in enumerate(behind):
        row, column = divmod(number, columns)
        x = _GAP + box_width / 2 + column * (box_width + _GAP)
        places[unit.unit] = x, bottom + box_height * 1.5 + row * (box_height + 30)
        right = max(right, x + box_width / 2 + _GAP)
    rows = -(-len(behind) // columns)
    width = max(right, len(_CAPTION) * 7.0)
    return places, round(width), round(bottom + rows * (box_height + 30) + box_height)


def _ends(
    start: tuple[float, float], end: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where the line between two boxes leaves the one and meets the other."""
    (x1, y1), (x2, y2) = start, end
    dx, dy = x2 - x1, y2 - y1
    across = abs(dx) / (_BOX[0] / 2) if dx else 0.0
    down = abs(dy) / (_BOX[1] / 2) if dy else 0.0
    scale = 1 / max(across, down, 1.0)
    return (x1 + dx * scale, y1 + dy * scale), (x2 - dx * scale, y2 - dy * scale)


def _arrows(report: DeadlockReport) -> Iterator[tuple[BlockedUnit, str, bool]]:
    for loop in report.loops:
        yield from ((unit, peer, True) for unit in loop.units for peer in unit.waits_for)
    yield from ((unit, peer, False) for unit in _behind(report) for peer in unit.waits_for)


def _behind(report: DeadlockReport) -> list[BlockedUnit]:
    return report.behind[:_BEHIND_SHOWN]


def _squeezed(name: str) -> str:
    """Return what lets a long name fit into its box."""
    fits = (_BOX[0] - 10) // 7
    room = f' textLength="{_BOX[0] - 10}" lengthAdjust="spacingAndGlyphs"'
    return room if len(name) > fits else ""


def _state(unit: BlockedUnit) -> str:
    since = "" if unit.since_cycle is None else f", since {unit.since_cycle:,}"
    operation = Operation(unit.operation)
    return f"{operation.cause.label if operation.cause else operation.label}{since}"


def _label(unit: BlockedUnit) -> str:
    return f"{_quoted(unit.unit)}\\n{_state(unit)}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

"""Pictures of a deadlock: units, the channels that they wait on, loops in red; and its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport
from fabric.analysis.drawing.lines import (
    FAINT,
    INK,
    LEADING,
    LINE,
    PAPER,
    RED,
    Point,
    Size,
    arrow,
    document,
    extent,
    layered,
    shortened,
    words,
)
from fabric.analysis.drawing.svg import escaped
from fabric.messages.causes import STUCK, Cause, Operation
from fabric.messages.files import write_whole
from fabric.messages.place import Place

_SHOWN: Final = 200

_TITLE: Final = 12

_SMALL: Final = 10

_AROUND: Final = 12.0

_SWATCH: Final = 6.0

_CAUSES: Final = (Cause.EMPTY, Cause.FULL, Cause.CAPACITY)

_GREY: Final = "#666666"


@dataclass(frozen=True)
class _Wait:
    """One unit waits for another; ``core`` waits are part of a loop."""

    source: str
    target: str
    label: tuple[str, ...]
    core: bool


def dot(report: DeadlockReport) -> str:
    """Return the waits as a Graphviz digraph."""
    lines = ["digraph deadlock {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    core, behind = _units(report)
    lines += [
        f'  "{escaped(unit.unit)}" [color="{STUCK}", label="{_label(unit)}"];' for unit in core
    ]
    lines += [f'  "{escaped(unit.unit)}" [label="{_label(unit)}"];' for unit in behind]
    for wait in _waits(report, core, behind):
        label = "\\n".join(map(escaped, wait.label))
        colour = STUCK if wait.core else _GREY
        lines.append(
            f'  "{escaped(wait.source)}" -> "{escaped(wait.target)}" '
            f'[color="{colour}", label="{label}"];'
        )
    return "\n".join([*lines, "}", ""])


def svg(report: DeadlockReport) -> str:
    """Return the waits as SVG; an arrow goes from a waiting unit to the unit that it waits for."""
    core, behind = _units(report)
    units = [*core, *behind]
    number = {unit.unit: index for index, unit in enumerate(units)}
    waits = [wait for wait in _waits(report, core, behind) if wait.target in number]
    layout = layered(
        [_size(unit) for unit in units],
        [(number[wait.source], number[wait.target]) for wait in waits],
        [_room(wait.label) for wait in waits],
    )

    def body() -> Iterator[str]:
        for wait, route in zip(waits, layout.routes, strict=True):
            yield arrow(route, RED if wait.core else LINE, width=1.6 if wait.core else 1.0)
        for wait, place in zip(waits, layout.labels, strict=True):
            if place is not None:
                yield from words(wait.label, place, _SMALL, INK if wait.core else FAINT)
        for unit, place in zip(units, layout.nodes, strict=True):
            yield from _box(unit, place, core=number[unit.unit] < len(core))

    title = f"{report.kind} at cycle {report.cycle:,}"
    return document(title, _legend(report, len(core), len(behind)), layout.size, body())


def _legend(report: DeadlockReport, core: int, behind: int) -> list[tuple[str, str]]:
    in_loops = sum(len(loop.units) for loop in report.loops)
    return [
        *((f'fill="{cause.colour}"', cause.label) for cause in _CAUSES),
        (RED.fill, "waits in a loop" + _of(core, in_loops)),
        (PAPER.fill, "waits behind it" + _of(behind, len(report.behind))),
        ("", "\N{RIGHTWARDS ARROW} to the awaited unit"),
    ]


def _of(shown: int, total: int) -> str:
    return "" if shown == total else f" ({shown:,} of {total:,} drawn)"


def _units(report: DeadlockReport) -> tuple[list[BlockedUnit], list[BlockedUnit]]:
    core = [unit for loop in report.loops for unit in loop.units]
    return core[:_SHOWN], report.behind[:_SHOWN]


def _waits(
    report: DeadlockReport, core: Iterable[BlockedUnit], behind: Iterable[BlockedUnit]
) -> Iterator[_Wait]:
    held = {
        channel.name: f"{channel.held:,} of {channel.depth:,} held"
        for loop in report.loops
        for channel in loop.channels
    }
    for units, is_core in ((core, True), (behind, False)):
        for unit in units:
            for peer in unit.waits_for:
                yield _Wait(unit.unit, peer, _told(unit, peer, held), is_core)


def _told(unit: BlockedUnit, peer: str, held: dict[str, str]) -> tuple[str, ...]:
    between = [
        name for name in unit.channels if name.startswith(f"{peer}.") or f" -> {peer}." in name
    ]
    if not between:
        cause = Operation(unit.operation).cause
        return () if cause is None else (cause.awaits,)
    # The consumer's end, which is the channel's name in ``--depth``.
    first = shortened(between[0].rpartition(" -> ")[2])
    lines = [first, held[between[0]]] if between[0] in held else [first]
    return (*lines, f"and {len(between) - 1:,} more") if len(between) > 1 else tuple(lines)


def _room(label: tuple[str, ...]) -> Size | None:
    if not label:
        return None
    width, height = extent(label, _SMALL)
    return width + 6, height + 2


def _texts(unit: BlockedUnit) -> tuple[list[str], list[str]]:
    place = Place(unit.file, unit.line).brief
    return [shortened(unit.unit)], [_state(unit), shortened(f"{unit.operator}  {place}")]


def _size(unit: BlockedUnit) -> Size:
    large, small = _texts(unit)
    (wide, high), (width, height) = extent(large, _TITLE), extent(small, _SMALL)
    return max(wide, width) + 2 * _AROUND, high + height + 10


def _box(unit: BlockedUnit, centre: Point, *, core: bool) -> Iterator[str]:
    (x, y), (width, height) = centre, _size(unit)
    left, top = x - width / 2, y - height / 2
    large, small = _texts(unit)
    edge = f'{RED.stroke} stroke-width="2"' if core else f'{LINE.stroke} stroke-width="1"'
    shape = f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5"'
    yield f"<g><title>{escape(unit.unit)}: needs {escape(unit.needs)}</title>"
    yield f"{shape} {PAPER.fill}/>"
    yield f'{shape} fill="none" {edge}/>'
    cause = Operation(unit.operation).cause
    if cause is not None:
        yield (
            f'<rect fill="{cause.colour}" x="{left + 3:.1f}" y="{top + 4:.1f}" width="{_SWATCH}" '
            f'height="{height - 8:.1f}"/>'
        )
    middle = x + _SWATCH / 2, top + 5 + _TITLE * LEADING / 2
    yield from words(large, middle, _TITLE, INK, bold=True)
    middle = middle[0], middle[1] + (_TITLE + 2 * _SMALL) * LEADING / 2
    yield from words(small, middle, _SMALL, FAINT)
    yield "</g>"


def _state(unit: BlockedUnit) -> str:
    since = "" if unit.since_cycle is None else f", since {unit.since_cycle:,}"
    operation = Operation(unit.operation)
    return f"{operation.cause.label if operation.cause else operation.label}{since}"


def _label(unit: BlockedUnit) -> str:
    return f"{escaped(unit.unit)}\\n{_state(unit)}"


def write_files(folder: Path, report: DeadlockReport) -> list[str]:
    """Write the report and its pictures; return a sentence for each failed file."""
    texts = {
        "deadlock.json": json.dumps(report.as_json(), indent=2) + "\n",
        "deadlock.dot": dot(report),
        "deadlock.svg": svg(report),
    }
    failed = []
    for name, text in texts.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            failed.append(f"{folder / name} could not be written: {error.strerror}")
    return failed

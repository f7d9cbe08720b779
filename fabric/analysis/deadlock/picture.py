"""The picture of a deadlock, with loops in red, and the files of its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport
from fabric.analysis.drawing.paper import LINE, shortened
from fabric.analysis.drawing.picture import Arrow, Box, Picture
from fabric.analysis.drawing.svg import dot, svg
from fabric.messages.causes import STUCK, Cause, Operation
from fabric.messages.files import write_whole
from fabric.messages.place import Place

_SHOWN: Final = 200

_CAUSES: Final = (Cause.EMPTY, Cause.FULL, Cause.CAPACITY)


def deadlock_picture(report: DeadlockReport) -> Picture:
    """Return the picture of the waits; an arrow goes from a waiting unit to the awaited one."""
    core = [unit for loop in report.loops for unit in loop.units]
    shown = [*core[:_SHOWN], *report.behind[:_SHOWN]]
    number = {unit.unit: index for index, unit in enumerate(shown)}
    in_loops = {unit.unit for unit in core}
    held = {
        channel.name: f"{channel.held:,} of {channel.depth:,} held"
        for loop in report.loops
        for channel in loop.channels
    }
    boxes, arrows = [], []
    for unit in shown:
        stuck = unit.unit in in_loops
        boxes.append(_box(unit, stuck=stuck))
        for peer in unit.waits_for:
            if peer in number:
                label = "\n".join(_label(unit, peer, held))
                arrows.append(Arrow(number[unit.unit], number[peer], label, stuck=stuck))
    legend = (
        *((cause.colour, cause.label) for cause in _CAUSES),
        (STUCK, "waits in a loop" + _drawn_note(len(core))),
        (LINE, "waits behind it" + _drawn_note(len(report.behind))),
        ("", "\N{RIGHTWARDS ARROW} to the awaited unit"),
    )
    title = f"{report.kind} at cycle {report.cycle:,}"
    return Picture(title, tuple(boxes), tuple(arrows), legend)


def _drawn_note(total: int) -> str:
    return "" if total <= _SHOWN else f" ({_SHOWN:,} of {total:,} drawn)"


def _box(unit: BlockedUnit, *, stuck: bool) -> Box:
    operation = Operation(unit.operation)
    since = "" if unit.since_cycle is None else f", since {unit.since_cycle:,}"
    return Box(
        title=unit.unit,
        count=1,
        operator=unit.operator,
        kind="",
        place=Place(unit.file, unit.line).brief,
        shares=None,
        state=(operation.cause.label if operation.cause else operation.label) + since,
        cause=operation.cause,
        stuck=stuck,
        note=f"needs {unit.needs}",
    )


def _label(unit: BlockedUnit, peer: str, held: Mapping[str, str]) -> Iterator[str]:
    between = [
        name for name in unit.channels if name.startswith(f"{peer}.") or f" -> {peer}." in name
    ]
    if not between:
        cause = Operation(unit.operation).cause
        if cause is not None:
            yield cause.awaits
        return
    # The consumer's end, which is the channel's name in ``--depth``.
    yield shortened(between[0].rpartition(" -> ")[2])
    if between[0] in held:
        yield held[between[0]]
    if len(between) > 1:
        yield f"and {len(between) - 1:,} more"


def write_files(folder: Path, report: DeadlockReport) -> list[str]:
    """Write the report and its pictures; return a sentence for each failed file."""
    picture = deadlock_picture(report)
    texts: dict[str, Callable[[], str]] = {
        "deadlock.json": lambda: json.dumps(report.as_json(), indent=2) + "\n",
        "deadlock.dot": lambda: dot(picture),
        "deadlock.svg": lambda: svg(picture),
    }
    failed = []
    for name, text in texts.items():
        try:
            write_whole(folder / name, text())
        except OSError as error:  # Graphviz reads temporary files, too
            failed.append(f"{folder / name} could not be written: {error.strerror}")
    return failed

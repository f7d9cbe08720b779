"""The report of a deadlock as a terminal shows it, and in one line for logs and tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeVar

from fabric.analysis.deadlock.document import (
    INTERRUPTED,
    NOT_ENDED,
    NOT_SOUGHT,
    BlockedUnit,
    Capacity,
    DeadlockReport,
    Depth,
    Front,
    Loop,
    LoopChannel,
    Remedy,
)
from fabric.display.columns import aligned
from fabric.messages.causes import Operation
from fabric.messages.place import Place
from fabric.messages.text import counted

LINES: Final = 40
_COLUMNS: Final = 100
_MARGIN: Final = 4
_ROWS: Final = 8
_FIRST_ROWS: Final = 5
_FOLD_FROM: Final = 3
_NAMES: Final = 6
_LINES: Final = 4

Table = list[tuple[str, ...]]
Part = TypeVar("Part")


def _folded(parts: Sequence[Part], most: int, more: Callable[[int], Part]) -> list[Part]:
    """Return at most ``most`` parts, and ``more(count)`` if ``count`` parts are left out."""
    rest = len(parts) - most
    return [*parts[:most], more(rest)] if rest > 0 else list(parts)


def with_summary(report: DeadlockReport) -> DeadlockReport:
    """Return ``report`` with its summary: code, cycle, loop, full channels and the remedy."""
    loop = report.loops[0]
    names = [unit.unit for unit in loop.units]
    if len(names) > _NAMES:
        names[_NAMES - 2 : -1] = [f"({len(names) - _NAMES + 1} more)"]
    if loop.units[0].unit in loop.units[-1].waits_for:
        names.append(names[0])
    words = [loop.code, *_stopped_at(report, "cycle {}"), f"loop {'>'.join(names)}"]
    full = [
        f"{channel.option}({channel.depth})"
        for channel in loop.channels
        if channel.held == channel.depth
    ]
    if full:
        words.append(f"full {','.join(full[:_NAMES])}")
    if len(report.loops) > 1:
        words.append(f"and {len(report.loops) - 1} more")
    fixes = [f"{depth.option}={depth.after}" for depth in report.remedy.depths]
    if report.remedy.capacity is not None:
        fixes.append(f"capacity_bytes={report.remedy.capacity.after_bytes}")
    fixes += [front.write for front in report.remedy.initial]
    fixes = _folded(fixes, _NAMES, lambda rest: f"({rest} more)")
    unknown = report.remedy.why_not in (NOT_SOUGHT, NOT_ENDED, INTERRUPTED)
    none = "fix unknown" if unknown else "fix none"
    words.append(f"fix {','.join(fixes)}(checked)" if fixes else none)
    return replace(report, summary=" ".join(words))


def report_lines(report: DeadlockReport, columns: int | None = None) -> list[str]:
    """Return the report in lines of ASCII; the first is the verdict, which is not wrapped.

    Without ``columns``, sentences are wrapped at 100 characters, tables are not wrapped, and
    at most ``LINES`` lines are returned. The last events are left out first.
    """
    with_events = len([*_parts(report, None, with_events=True)]) <= LINES
    lines = [*_parts(report, columns, with_events=with_events)]
    return lines[:LINES] if columns is None else lines


def _parts(report: DeadlockReport, columns: int | None, *, with_events: bool) -> Iterator[str]:
    yield _verdict(report)
    title = "the loop" if len(report.loops[0].units) > 1 else "the operator"
    yield from _section(title, _loop(report.loops[0], columns))
    yield from _other_loops(report.loops[1:], columns)
    yield from _section("cause", _wrapped(report.loops[0].cause, _NAMES, columns))
    yield from _remedies(report, columns)
    yield from _section("", _tokens(report.loops[0], columns))
    if with_events:
        yield from _section("", _events(report, columns))
    yield from _section("", _behind(report, columns))


def _verdict(report: DeadlockReport) -> str:
    first = report.loops[0]
    count = sum(len(loop.units) for loop in report.loops)
    if len(report.loops) > 1:
        what = f"{counted(count, 'operator')} in {counted(len(report.loops), 'loop')}"
    elif first.units[0].operation == "circling":
        what = f"{first.units[0].unit} repeats a loop in its code"
    elif report.code == "FAB-L001":
        what = f"{counted(count, 'operator')} moving in a loop"
    elif len(first.units) > 1:
        what = f"{counted(count, 'operator')} wait in a loop"
    elif first.units[0].unit in first.units[0].waits_for:
        what = f"{first.units[0].unit} waits for itself"
    else:
        what = f"{first.units[0].unit} can never continue"
    behind = f", {len(report.behind):,} behind" if report.behind else ""
    at = "".join(_stopped_at(report, " at cycle {:,}"))
    return f"error[{report.code}]: {report.kind}{at}: {what}{behind}"


def _stopped_at(report: DeadlockReport, text: str) -> list[str]:
    return [] if report.code == "FAB-L001" else [text.format(report.cycle)]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    head = ["", f"  {title}"] if title else [""]
    return [*head, *lines]


def _loop(loop: Loop, columns: int | None) -> list[str]:
    held = {channel.name: channel for channel in loop.channels}
    rows: Table = []
    number = 1
    for _, alike in groupby(loop.units, _kind):
        units = list(alike)
        if len(units) < _FOLD_FROM:
            for unit in units:
                rows.append((f"{number:>3}", unit.unit, *_wait(unit, held)))
                number += 1
        else:
            label = f"{units[0].unit} .. {units[-1].unit}"
            state, *_ = _wait(units[0], held)
            count = f"x {len(units):,}"
            rows.append((f"{number:>3}", label, state, count, "", _since(units[0]), _at(units[0])))
            number += len(units)
    if len(rows) > _ROWS:
        left_out = ("  :", f"{counted(len(rows) - _ROWS + 1, 'more line')} in deadlock.json")
        rows[_FIRST_ROWS : _FIRST_ROWS + len(rows) - _ROWS + 1] = [left_out]
    lines = aligned(rows, columns, indent="  ")
    first, last = loop.units[0], loop.units[-1]
    if first is not last and first.unit in last.waits_for and loop.code != "FAB-L001":
        lines.append(f"       and {last.unit} waits for {first.unit}")
    return lines


def _kind(unit: BlockedUnit) -> tuple[str, str, str, int]:
    return unit.operator, unit.operation, unit.file, unit.line


def _wait(unit: BlockedUnit, held: dict[str, LoopChannel]) -> tuple[str, ...]:
    operation = Operation(unit.operation)
    state = " ".join(filter(None, (operation.label, operation.cause and operation.cause.label)))
    if operation is Operation.CAPACITY:
        return state, unit.needs, "", _since(unit), _at(unit)
    channels = [held[name] for name in unit.channels if name in held]
    ends = []
    for name in unit.channels:
        producer, _, consumer = name.partition(" -> ")
        if operation in {Operation.SEND, Operation.MOVING}:
            ends.append(f"{producer.removeprefix(unit.unit)} -> {consumer}")
        else:
            ends.append(f"{consumer.removeprefix(unit.unit)} <- {producer}")
    slots = " ".join(f"{channel.held}/{channel.depth} held" for channel in channels)
    if operation is Operation.SEND and any(channel.held < channel.depth for channel in channels):
        state = f"{operation.label} lost"
    return state, " or ".join(ends), slots, _since(unit), _at(unit)


def _since(unit: BlockedUnit) -> str:
    return "" if unit.since_cycle is None else f"cyc {unit.since_cycle:,}"


def _at(unit: BlockedUnit) -> str:
    return Place(unit.file, unit.line).brief


def _other_loops(loops: Sequence[Loop], columns: int | None) -> list[str]:
    alike: dict[tuple[object, ...], list[Loop]] = {}
    for loop in loops:
        alike.setdefault((loop.code, *map(_kind, loop.units)), []).append(loop)
    lines = []
    for first, *equal in alike.values():
        names = " > ".join(unit.unit for unit in first.units[:_NAMES])
        more = " > ..." if len(first.units) > _NAMES else ""
        times = f", x {len(equal) + 1:,}" if equal else ""
        lines.append(f"{first.code}  {names}{more}{times}")
    lines = _folded(lines, _LINES, lambda rest: f"{counted(rest, 'more kind')} in deadlock.json")
    return _section("other loops", aligned([(line,) for line in lines], columns, indent="    "))


def _wrapped(text: str, lines: int, columns: int | None, indent: str = "    ") -> list[str]:
    room = (columns or _COLUMNS) - _MARGIN
    return textwrap.wrap(
        text,
        room,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=max(lines, lines * (_COLUMNS - _MARGIN) // room),
        placeholder=" ... (deadlock.json)",
    )


def _remedies(report: DeadlockReport, columns: int | None) -> list[str]:
    remedy, every = report.remedy, report.remedy.every_channel
    lines: list[str] = []
    if every is not None:
        change = f"depth of every channel {every.before:,} -> {every.after:,}"
        lines += _completing("checked by a re-run", every.cycles, [(change, every.write)], columns)
    if remedy.cycles is not None:
        how = "channel by channel" if every else "checked by a re-run"
        rows = [*_changes(remedy), *_faster(remedy)]
        lines += _completing(how, remedy.cycles, rows, columns)
        return [*lines, *_limits(remedy, columns)]
    hints = list(dict.fromkeys(loop.hint for loop in report.loops if loop.hint))
    hints = _folded(hints, _LINES, lambda rest: f"And so on for {counted(rest, 'more loop')}")
    sentences = [_wrapped(f"{text}.", 3, columns) for text in (remedy.why_not, *hints)]
    return _section("remedy", [line for sentence in sentences for line in sentence])


def _completing(how: str, cycles: int, rows: Table, columns: int | None) -> list[str]:
    title = f"remedy ({how}: completes at cycle {cycles:,})"
    return _section(title, aligned(rows, columns, indent="    "))


def _rejected(change: Capacity | Depth | Front, less: int) -> str:
    if change.rejected_cycle is None:
        return ""
    same = "the same loop" if change.same_loop else "stops"
    return f"{less:,} is not enough: {same} at cycle {change.rejected_cycle:,}"


def _changes(remedy: Remedy) -> Table:
    rows: Table = []
    capacity = remedy.capacity
    if capacity is not None:
        change = f"capacity {capacity.before_bytes:,} -> {counted(capacity.after_bytes, 'byte')}"
        key = f"[on_chip] capacity_bytes = {capacity.after_bytes}"
        rows.append((change, key, _rejected(capacity, capacity.after_bytes - 1)))
    fronts: Table = [
        (
            f"begin the loop at {Place(front.file, front.line).brief}",
            front.statement or f"connect({front.write})",
            _rejected(front, front.count - 1),
        )
        for front in remedy.initial
    ]
    rows += _folded(fronts, _LINES, lambda rest: (f"and {rest:,} more in deadlock.json",))
    if any(front.statement for front in remedy.initial):
        rows.append(("  which needs", "from fabric import Initial"))
    grow = "" if rows else "; --on-deadlock grow applies all"
    depths: Table = [
        (
            f"depth of {depth.option} {depth.before:,} -> {depth.after:,}",
            f"--depth {depth.option}={depth.after}",
            _rejected(depth, depth.after - 1),
        )
        for depth in remedy.depths
    ]
    return rows + _folded(
        depths, _LINES, lambda rest: (f"and {rest:,} more in deadlock.json{grow}",)
    )


def _faster(remedy: Remedy) -> Table:
    rows: Table = [("", f"--depth {option}={depth}") for option, depth in remedy.faster.items()]
    if remedy.cycles is not None and remedy.faster_cycles is not None:
        percent = 100 - 100 * remedy.faster_cycles / remedy.cycles
        end = f"completes at cycle {remedy.faster_cycles:,}"
        rows[0] = (f"{percent:.0f} % fewer cycles with", rows[0][1], end)
    return _folded(rows, _LINES, lambda rest: (f"and {rest:,} more in deadlock.json",))


def _limits(remedy: Remedy, columns: int | None) -> list[str]:
    if remedy.why_not:
        larger = "They" if remedy.depths or remedy.initial else "It"
        return _wrapped(f"{larger} may be larger than needed: {remedy.why_not}.", 2, columns)
    if len(remedy.depths) + len(remedy.initial) + (remedy.capacity is not None) > 1:
        return _wrapped("No number can be lowered by one with the other numbers kept.", 2, columns)
    return []


def _tokens(loop: Loop, columns: int | None) -> list[str]:
    if not loop.channels:
        return []
    rows: Table = [("  elements", "sent", "taken", "held", "expected", "")]
    channels = [_token_row(channel) for channel in loop.channels]
    rows += _folded(channels, _NAMES, lambda rest: (f"    {rest:,} more in deadlock.json",))
    return aligned(rows, columns)


def _token_row(channel: LoopChannel) -> tuple[str, ...]:
    ended = "" if channel.ended_cycle is None else f"ended at cycle {channel.ended_cycle:,}"
    return (
        f"    {channel.name}",
        f"{channel.sent:,}",
        f"{channel.taken:,}",
        f"{channel.held}/{channel.depth}",
        channel.expected
        + (f"  {channel.shape}" if channel.expected.isdigit() and "," in channel.shape else ""),
        ended,
    )


def _events(report: DeadlockReport, columns: int | None) -> list[str]:
    rows: Table = [
        ("  last events" if position == 0 else "", f"cyc {event.cycle:,}", event.unit, event.what)
        for position, event in enumerate(report.last_events[-_LINES:])
    ]
    return aligned(rows, columns)


def _behind(report: DeadlockReport, columns: int | None) -> list[str]:
    alike: dict[object, list[BlockedUnit]] = {}
    for unit in report.behind:
        alike.setdefault(_kind(unit), []).append(unit)
    groups = list(alike.values())
    names = [group[0].unit + (f" (x {len(group):,})" if len(group) > 1 else "") for group in groups]
    left_out = sum(len(group) for group in groups[_NAMES:])
    names = _folded(names, _NAMES, lambda _: f"{left_out:,} more")
    behind = f"behind: {', '.join(names)}; " if names else ""
    return _wrapped(f"{behind}finished: {report.finished:,}", 2, columns, indent="  ")

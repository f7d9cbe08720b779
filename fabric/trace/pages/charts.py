"""Charts over the cycles of a run: units, HBM bandwidth, elements in channels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from fabric.telling.causes import SHOWN, Cause
from fabric.trace.analysis.slices import Level, bandwidth, occupancy, slices
from fabric.trace.analysis.stalls import Accounts
from fabric.trace.pages.svg import element

if TYPE_CHECKING:
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["bandwidth_chart", "legend", "occupancy_charts", "timeline_chart"]

_LEFT, _WIDE = 230, 860
_BINS: Final = 430
_UNITS: Final = 60
_CHANNELS: Final = 12
_ROW: Final = 15
_TICKS: Final = 5


def legend() -> str:
    """Return what the colours mean."""
    return element(
        "p",
        "".join(
            element("span", element("i", "", style=f"background:{cause.colour}") + cause.label)
            for cause in SHOWN
        ),
        class_="legend",
    )


def timeline_chart(accounts: Accounts) -> str:
    """Return a row a unit, each stretch in the colour of what the unit mostly did in it."""
    lines = accounts.timelines
    on_path = {root.unit for root in accounts.on_path()}
    kept = sorted(
        accounts.units,
        key=lambda each: (each.unit not in on_path, -each.busy - each.hbm, -each.stalled),
    )
    units = sorted(each.unit for each in kept[:_UNITS])
    rows = ""
    for number, unit in enumerate(units):
        y = number * _ROW
        rows += _label(accounts.names.units[unit], y + 11)
        rows += "".join(
            element(
                "rect", x=f"{_LEFT + _WIDE * start / _BINS:.1f}", y=y + 1,
                width=f"{_WIDE * (end - start) / _BINS:.1f}", height=_ROW - 2, fill=state.colour,
            )
            for start, end, state in _stretches(accounts, unit)
        )  # fmt: skip
    height = len(units) * _ROW
    rows += _axis(lines.first, lines.last, height)
    note = ""
    if len(units) < len(accounts.units):
        note = element(
            "p",
            f"The critical path's and the most active: {_UNITS} of {len(accounts.units):,} units.",
        )
    return note + element("div", _svg(rows, height + 20), class_="scroll")


def bandwidth_chart(trace: RecordedRun, accounts: Accounts) -> str:
    """Return bytes a cycle that the HBM moved, over time."""
    first, last = trace.window
    if last <= first or not trace.rows("SELECT 1 FROM bursts LIMIT 1"):
        return element("p", "The program does not use the HBM.")
    width = max(1, -(-(last - first) // _BINS))
    levels = [(level.cycle, level.value / width) for level in bandwidth(trace, width)]
    peak: float = trace.meta["off_chip"]["peak_bytes_per_cycle"]
    top = max(peak, *(value for _, value in levels))
    height = 150

    def x(cycle: float) -> float:
        return _LEFT + _WIDE * (min(cycle, last) - first) / (last - first)

    def y(value: float) -> float:
        return 6 + height * (1 - value / top)

    points = [f"{x(first):.1f},{y(0):.1f}"]
    for cycle, value in levels:
        points += [f"{x(cycle):.1f},{y(value):.1f}", f"{x(cycle + width):.1f},{y(value):.1f}"]
    points.append(f"{x(last):.1f},{y(0):.1f}")
    body = element("polygon", points=" ".join(points), fill=Cause.HBM.colour, fill_opacity=0.55)
    body += element(
        "line", y1=f"{y(peak):.1f}", y2=f"{y(peak):.1f}", stroke="#1c2733",
        stroke_dasharray="4 3", x1=_LEFT, x2=_LEFT + _WIDE,
    )  # fmt: skip
    body += _label(f"peak {peak:,.0f} bytes/cycle", y(peak) + 4)
    moved = accounts.cycles and sum(value * width for _, value in levels) / accounts.cycles
    body += element(
        "text", f"mean {moved:,.0f}", x=_LEFT + _WIDE + 8, y=f"{y(moved) + 4:.0f}", font_size=11,
        fill="#5b6875",
    )  # fmt: skip
    body += element(
        "line",
        y1=f"{y(moved):.1f}",
        y2=f"{y(moved):.1f}",
        stroke=Cause.HBM.colour,
        x1=_LEFT,
        x2=_LEFT + _WIDE,
    )
    note = "Each burst is spread evenly over its time: where bursts overlap, peaks can be too high."
    drawing = _svg(body + _axis(first, last, height + 6), height + 26)
    return element("p", note) + element("div", drawing, class_="scroll")


def occupancy_charts(trace: RecordedRun, accounts: Accounts) -> str:
    """Return the most elements held in each stretch, channels that hold units up first."""
    first, last = trace.window
    worst = trace.rows(
        "SELECT channel, name, depth FROM waits JOIN channels USING (channel) "
        "GROUP BY ALL ORDER BY coalesce(sum(cycles) FILTER (cause = 'full'), 0) DESC, "
        f"sum(cycles) DESC, channel LIMIT {_CHANNELS}"
    )
    levels = dict(occupancy(trace))
    body, height = "", 40
    for number, (channel, _, depth) in enumerate(worst):
        y = number * (height + 12) + 4
        tops = _tops(levels.get(channel, []), first, last)
        top = max(depth, *tops)
        ends = accounts.names.ends[channel]
        for end, dy in zip(ends, (14, 28), strict=True):
            body += _label(("" if end == ends[0] else "→ ") + accounts.names.units[end], y + dy)
        body += element(
            "text", f"depth {depth}", x=_LEFT + _WIDE + 8, y=y + 14, font_size=11, fill="#5b6875"
        )
        body += element("rect", x=_LEFT, y=y, width=_WIDE, height=height, fill="#f6f8fa")
        points = [f"{_LEFT},{y + height}"]
        for place, value in enumerate(tops):
            at = y + height * (1 - value / top)
            points += [
                f"{_LEFT + _WIDE * each / len(tops):.1f},{at:.1f}" for each in (place, place + 1)
            ]
        points.append(f"{_LEFT + _WIDE},{y + height}")
        body += element("polygon", points=" ".join(points), fill="#5b6875", fill_opacity=0.7)
    total = len(worst) * (height + 12)
    drawing = _svg(body + _axis(first, last, total), total + 20)
    return element("div", drawing, class_="scroll")


def _stretches(accounts: Accounts, unit: int) -> list[tuple[int, int, Cause]]:
    """Return (first bin, last bin + 1, state) for runs of bins in which one state prevails."""
    lines = accounts.timelines
    length = max(1, lines.last - lines.first)
    share: list[dict[Cause, float]] = [{} for _ in range(_BINS)]
    for piece in slices(lines, unit):
        begin = (piece.start - lines.first) * _BINS / length
        end = (piece.end - lines.first) * _BINS / length
        place = int(begin)
        while place < end and place < _BINS:
            part = min(end, place + 1) - max(begin, place)
            share[place][piece.state] = share[place].get(piece.state, 0.0) + part
            place += 1
    found: list[tuple[int, int, Cause]] = []
    for place, parts in enumerate(share):
        parts[Cause.IDLE] = 1 - sum(parts.values())
        state = max(SHOWN, key=lambda each: parts.get(each, 0.0))
        if found and found[-1][2] == state:
            found[-1] = (found[-1][0], place + 1, state)
        else:
            found.append((place, place + 1, state))
    return found


def _tops(levels: list[Level], first: int, last: int) -> list[int]:
    """Return the most elements held in each bin."""
    length = max(1, last - first)
    bins = min(_BINS, length)
    tops = [0] * bins
    level, place = 0, 0
    for cycle, value in [*levels, Level(last, 0)]:
        end = min((cycle - first) * bins // length, bins - 1)
        for each in range(place, end + 1):
            tops[each] = max(tops[each], level)
        tops[end] = max(tops[end], value)
        level, place = value, end
    return tops


def _svg(body: str, height: float) -> str:
    width = _LEFT + _WIDE + 90
    return element("svg", body, width=width, height=height, viewBox=f"0 0 {width} {height}")


def _label(text: str, y: float) -> str:
    short = text if len(text) <= 34 else f"{text[:20]}…{text[-13:]}"
    return element(
        "text", element("title", escape(text)) + escape(short), x=_LEFT - 8, y=f"{y:.0f}",
        text_anchor="end", font_size=11, fill="#1c2733",
    )  # fmt: skip


def _axis(first: int, last: int, y: float) -> str:
    """Return cycles along the lower edge."""
    marks = ""
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDE * tick / _TICKS
        cycle = first + (last - first) * tick // _TICKS
        marks += element(
            "text", f"{cycle:,}", x=f"{x:.0f}", y=f"{y + 14:.0f}", font_size=11,
            text_anchor="middle", fill="#5b6875",
        )  # fmt: skip
        marks += element("line", x1=x, x2=x, y1=0, y2=y, stroke="#1c2733", stroke_opacity=0.12)
    return marks

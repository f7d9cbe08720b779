"""The graph of a program for a page, and the mesh of its units with the load of links."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.drawing.picture import Arrow, Box, Picture
from fabric.analysis.drawing.svg import svg
from fabric.messages.causes import SHOWN
from fabric.messages.text import Family, counted, families, visible

if TYPE_CHECKING:
    from fabric.analysis.trace.analysis.stalls import Accounts
    from fabric.analysis.trace.reading.wording import Names
    from fabric.messages.text import JsonObject

_FOLD_FROM: Final = 40

_MOST_BOXES: Final = 300

_BETWEEN: Final = re.compile(r"(\d{1,4}),(\d{1,4}) -> (\d{1,4}),(\d{1,4})")

_OF_SITE: Final = re.compile(r"(?:out of|into) (\d{1,4}),(\d{1,4})")

_LEVELS: Final = 10
"""Shades of a link: one for each tenth of its capacity."""

_MOST: Final = 1024

_STEP: Final = 10

_SIDE: Final = 5.6

_ASIDE: Final = 0.9
"""Offset of the two directions from the line between two sites."""

_SHOWN: Final = 10

_HEADS: Final = {"busiest links": "", "bytes": "n", "% busy": "n", "channels": ""}


def graphs(accounts: Accounts, stuck: set[int]) -> list[JsonObject]:
    """Return the graph with equal units folded, if many, and unfolded, if few.

    Each has its ``svg``, the ``units`` of each box, and the two boxes of each arrow. Elements of
    box n have the class ``box{n}``, those of arrow n ``arrow{n}``.
    """
    names = accounts.names
    units = len(names.units)
    found = []
    if units >= _FOLD_FROM:
        groups = _alike(names, stuck)
        if len(groups) < units:
            found.append(_graph(groups, accounts, stuck) | {"title": "alike units folded"})
    if units <= _MOST_BOXES or not found:
        single = [Family(name, (unit,)) for unit, name in enumerate(names.units)]
        found.append(_graph(single, accounts, stuck) | {"title": "all units"})
    return found


def _alike(names: Names, stuck: set[int]) -> list[Family[int]]:
    """Return the families of units; stuck units have families of their own."""
    return families(
        range(len(names.units)),
        names.units.__getitem__,
        lambda unit: (names.operators[unit], names.wired[unit], unit in stuck),
    )


def _graph(groups: list[Family[int]], accounts: Accounts, stuck: set[int]) -> JsonObject:
    names = accounts.names
    box_of = {unit: number for number, group in enumerate(groups) for unit in group.members}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for channel, (producer, consumer) in enumerate(names.ends):
        if box_of[producer] != box_of[consumer]:
            between[box_of[producer], box_of[consumer]].append(channel)
    boxes = tuple(_box(group, accounts, stuck) for group in groups)
    arrows = tuple(
        _arrow(ends, channels, names, stuck=all(boxes[end].stuck for end in ends))
        for ends, channels in between.items()
    )
    return {
        "svg": svg(Picture("", boxes, arrows)),
        "boxes": [{"units": group.members, "title": visible(group.title)} for group in groups],
        "arrows": list(between),
    }


def _box(group: Family[int], accounts: Accounts, stuck: set[int]) -> Box:
    names, first = accounts.names, group.members[0]
    stalls = accounts.by_number
    traced = [stalls[unit] for unit in group.members if unit in stalls]
    cycles = {cause: sum(getattr(each, cause) for each in traced) for cause in SHOWN}
    whole = sum(cycles.values()) or 1
    return Box(
        title=visible(group.title),
        count=len(group.members),
        operator=names.functions[first],
        kind="",
        place=visible(names.places[first]),
        shares={cause: each / whole for cause, each in cycles.items()},
        copies=names.operators[first] == "Broadcast",
        stuck=not stuck.isdisjoint(group.members),
    )


def _arrow(ends: tuple[int, int], channels: list[int], names: Names, *, stuck: bool) -> Arrow:
    found = families(channels, names.streams.__getitem__)
    title, members = max(found, key=lambda family: len(family.members))
    note = visible(names.channels[channels[0]])
    if len(channels) > 1:
        note += f" and {counted(len(channels) - 1, 'more channel')}"
    return Arrow(*ends, title, len(members), stuck, note)


class _Link(NamedTuple):
    texts: Sequence[str]
    share: float


def mesh(rows: Sequence[Sequence[str]], meta: Mapping[str, object]) -> str:
    """Return the section about links of a run; empty if no link has a limit.

    ``rows`` have each link's name, bytes, percent of its capacity, and channels.
    """
    links = [link for row in rows if len(row) == 4 and (link := _link(row)) is not None]
    if not links:
        return ""
    return (
        "<section><h2>Links of the network</h2>"
        '<p class="quiet">A square is a site, a line a link to its neighbour. '
        "The redder a line, the busier the link was in the whole run; "
        "a square is as red as what its site sent or took, whichever is more.</p>"
        f'<p class="quiet">{"".join(_legend())}</p>'
        f'<div class="columns"><div class="mesh">{"".join(_picture(links, _size(meta)))}</div>'
        f'<div class="scroll">{"".join(_table(links))}</div></div></section>'
    )


def _link(row: Sequence[str]) -> _Link | None:
    try:
        share = float(row[2]) / 100
    except ValueError:
        return None
    # A trace may be from an untrusted sender: invalid shares are left out.
    return _Link(row, share) if 0 <= share < 2 else None


def _legend() -> Iterator[str]:
    for level in range(1, _LEVELS, 2):
        low, high = 10 * level, 10 * (level + 1)
        yield (
            f'<span class="shade"><span class="swatch" '
            f'style="background:var(--bad);opacity:{_opacity(level)}"></span>'
            f"{low} to {high} %</span> "
        )


def _opacity(level: int) -> float:
    return round((level + 1) / _LEVELS, 2)


def _size(meta: Mapping[str, object]) -> tuple[int, int]:
    hardware = meta.get("hardware")
    network = hardware.get("network") if isinstance(hardware, dict) else None
    sizes = [network.get(each) for each in ("columns", "rows")] if isinstance(network, dict) else []
    columns, rows = (
        each if isinstance(each, int) and 1 <= each <= _MOST else 1 for each in sizes or (1, 1)
    )
    return columns, rows


def _picture(links: Sequence[_Link], size: tuple[int, int]) -> Iterator[str]:
    lines: defaultdict[int, list[str]] = defaultdict(list)
    busy: defaultdict[tuple[int, int], float] = defaultdict(float)
    columns, rows = size[0] - 1, size[1] - 1
    for link in links:
        level = min(int(link.share * _LEVELS), _LEVELS - 1)
        if found := _BETWEEN.fullmatch(link.texts[0]):
            column, row, to_column, to_row = map(int, found.groups())
            columns, rows = max(columns, column, to_column), max(rows, row, to_row)
            right, down = to_column - column, to_row - row
            if abs(right) + abs(down) == 1:
                x, y = _centre(column, row)
                lines[level].append(
                    f"M{x - down * _ASIDE:g} {y + right * _ASIDE:g}"
                    f"{'h' if right else 'v'}{(right + down) * _STEP}"
                )
        elif found := _OF_SITE.fullmatch(link.texts[0]):
            column, row = map(int, found.groups())
            columns, rows = max(columns, column), max(rows, row)
            busy[column, row] = max(busy[column, row], link.share)
    wide, high = (columns + 1) * _STEP, (rows + 1) * _STEP
    yield (
        f'<svg viewBox="0 0 {wide} {high}" style="max-width:{min(760, 4 * wide)}px" role="img">'
        "<title>the mesh, its links by how busy they were</title>"
    )
    for level, paths in sorted(lines.items()):
        yield (
            f'<path d="{"".join(paths)}" class="link" style="opacity:{_opacity(level)};'
            f'stroke-width:{0.4 + 0.12 * level:.2f}">{_title(level)}</path>'
        )
    every = [(column, row) for row in range(rows + 1) for column in range(columns + 1)]
    yield f'<path d="{"".join(map(_square, every))}" class="site"></path>'
    sites: defaultdict[int, list[str]] = defaultdict(list)
    for site, share in busy.items():
        sites[min(int(share * _LEVELS), _LEVELS - 1)].append(_square(site))
    for level, squares in sorted(sites.items()):
        yield (
            f'<path d="{"".join(squares)}" class="busy" style="opacity:{_opacity(level)}">'
            f"{_title(level)}</path>"
        )
    yield "</svg>"


def _title(level: int) -> str:
    return f"<title>busy {10 * level} to {10 * (level + 1)} %</title>"


def _centre(column: int, row: int) -> tuple[float, float]:
    return (column + 0.5) * _STEP, (row + 0.5) * _STEP


def _square(site: tuple[int, int]) -> str:
    x, y = _centre(*site)
    return f"M{x - _SIDE / 2:g} {y - _SIDE / 2:g}h{_SIDE}v{_SIDE}h-{_SIDE}z"


def _table(links: Sequence[_Link]) -> Iterator[str]:
    yield "<table>"
    yield _row(f'<th class="{form}">{name}</th>' for name, form in _HEADS.items())
    for link in sorted(links, key=lambda each: -each.share)[:_SHOWN]:
        cells = zip(link.texts, _HEADS.values(), strict=True)
        yield _row(f'<td class="{form}">{escape(visible(each))}</td>' for each, form in cells)
    yield "</table>"
    if len(links) > _SHOWN:
        yield f'<p class="quiet">{counted(len(links) - _SHOWN, "more link")} carried something.</p>'


def _row(cells: Iterator[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"

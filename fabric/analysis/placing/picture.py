"""A floor plan as SVG: sites coloured by the family of their units, links by their load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from fabric.analysis.drawing.mesh import Link, Square, mesh
from fabric.analysis.drawing.paper import FAINT, INK, PAPER, extent, framed, shortened
from fabric.analysis.placing.floor import Unit, site_text
from fabric.analysis.placing.result import FloorPlan
from fabric.messages.causes import STUCK
from fabric.messages.text import Family, counted, families

_COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d8c400", "#8a4fbf", "#8c564b",
)  # fmt: skip

_REST: Final = "#9aa3ad"
_FONT: Final = 11
_LINE: Final = 17.0
_TOP: Final = 40.0
_USERS: Final = 10


def floor_svg(plan: FloorPlan) -> str:
    groups = families(plan.floor.netlist.units, lambda unit: unit.name)
    groups.sort(key=lambda family: -len(family.members))
    columns, rows = plan.mesh.columns, plan.mesh.rows
    (wide, high), shapes = mesh(columns, rows, _links(plan), _squares(plan, groups))
    lines = list(_texts(plan, groups))
    beside = max(extent([text], _FONT)[0] for text, _, _ in lines) + 40
    title = f"{plan.program} on {columns} x {counted(rows, 'site')}"
    heavy = 'font-size="15" font-weight="600"'
    width, height = wide + beside + 40, _TOP + 16 + max(high, len(lines) * _LINE)
    body = (
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>\n'
        f'<text x="16" y="27" {heavy} fill="{INK}">{escape(title)}</text>\n'
        f'<g transform="translate(16 {_TOP:.0f})">\n{shapes}'
        f"{''.join(_line(*text, wide + 24, at * _LINE) for at, text in enumerate(lines))}</g>\n"
    )
    return framed(title, (width, height), body)


def _texts(
    plan: FloorPlan, groups: Sequence[Family[Unit]]
) -> Iterator[tuple[str, str | None, str]]:
    load = counted(0 if plan.worst is None else plan.worst.size_bytes, "byte")
    yield f"links: the more bytes, the redder; the worst link has {load}", STUCK, FAINT
    yield "", None, INK
    yield "sites, coloured by the commonest family of their units", None, INK
    for (title, units), colour in zip(groups, _COLOURS, strict=False):
        yield f"{shortened(title)}  {len(units):,}", colour, FAINT
    rest = sum(len(units) for _, units in groups[len(_COLOURS) :])
    if rest:
        yield f"others  {rest:,}", _REST, FAINT
    worst = plan.worst
    if worst is None:
        return
    yield "", None, INK
    yield f"the worst link: {site_text(worst.source)} to {site_text(worst.target)}", None, INK
    for user, size_bytes in [*worst.users.items()][:_USERS]:
        yield f"{counted(size_bytes, 'byte'):>19}  {shortened(user)}", None, FAINT
    if len(worst.users) > _USERS:
        yield f"and {counted(len(worst.users) - _USERS, 'more output')}", None, FAINT


def _line(text: str, fill: str | None, colour: str, left: float, top: float) -> str:
    after, swatch = left, ""
    if fill is not None:
        after += 18
        swatch = f'<rect x="{left:.1f}" y="{top:.1f}" width="11" height="11" rx="2" fill="{fill}"/>'
    place = f'x="{after:.1f}" y="{top + 9.5:.1f}" font-size="{_FONT}" xml:space="preserve"'
    return f'{swatch}<text {place} fill="{colour}">{escape(text)}</text>\n'


def _links(plan: FloorPlan) -> Iterator[Link]:
    floor = plan.floor
    loads = floor.link_bytes(plan.numbers)
    weighed = [load * weight for load, weight in zip(loads, floor.weights, strict=True)]
    most = max(weighed)
    for ends, load, weight in zip(plan.mesh.link_ends, loads, weighed, strict=True):
        if ends is not None and weight:
            # With the square root, a tenth of the worst load is still visible.
            yield Link(*ends, math.sqrt(weight / most), counted(load, "byte"))


def _squares(plan: FloorPlan, groups: Sequence[Family[Unit]]) -> Iterator[Square]:
    family_of = {unit: number for number, (_, units) in enumerate(groups) for unit in units}
    here: dict[int, list[Unit]] = {}
    for unit, number in zip(plan.floor.netlist.units, plan.numbers, strict=True):
        here.setdefault(number, []).append(unit)
    for number, units in here.items():
        ((commonest, _),) = Counter(family_of[unit] for unit in units).most_common(1)
        colour = _COLOURS[commonest] if commonest < len(_COLOURS) else _REST
        names = ", ".join(unit.name for unit in units)
        site = plan.mesh.sites[number]
        yield Square(site, colour, f"{site_text(site)}: {names}")

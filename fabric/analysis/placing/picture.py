"""A floor plan as SVG: sites coloured by the family of their units, links by their load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from fabric.analysis.drawing.paper import BOX, FAINT, INK, RED, Paint, document, extent, shortened
from fabric.graph.hardware.latency import Site
from fabric.messages.text import counted, merged_text, without_numbers

if TYPE_CHECKING:
    from fabric.analysis.placing.result import FloorPlan

_COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d8c400", "#8a4fbf", "#8c564b",
)  # fmt: skip

_REST: Final = "#9aa3ad"
_WIDEST: Final = 720.0
"""Width of the whole mesh in pixels; it limits the size of sites."""

_LARGEST_SITE: Final = 44.0
_SHARE: Final = 0.6
"""Fraction of the distance between sites that a site covers; the rest shows the link."""

_FONT: Final = 11
_LINE: Final = 17.0
_USERS: Final = 10
_FAINTEST: Final = 0.1


def floor_svg(plan: FloorPlan) -> str:
    """Return the picture of ``plan`` as an SVG document."""
    mesh = plan.mesh
    step = min(_LARGEST_SITE / _SHARE, _WIDEST / max(mesh.columns, mesh.rows))
    width, height = mesh.columns * step, mesh.rows * step
    families = _families(plan)
    shown = [family for family, _ in families.most_common(len(_COLOURS))]
    colours = dict(zip(shown, _COLOURS, strict=False))
    lines = list(_texts(plan, families, colours))
    beside = max(extent([text], _FONT)[0] for text, _, _ in lines) + 40

    def body() -> Iterator[str]:
        yield from _links(plan, step)
        yield from _sites(plan, step, colours)
        for number, (text, fill, paint) in enumerate(lines):
            yield from _line(text, fill, paint, width + 24, number * _LINE)

    title = f"{plan.program} on {mesh.columns} x {counted(mesh.rows, 'site')}"
    # The legend has only the colour of links; the families are listed beside the mesh.
    legend = [(RED.fill, f"links: the redder, the nearer to the worst one's {_load(plan)}")]
    size = width + 24 + beside, max(height, len(lines) * _LINE)
    return document(title, legend, size, body())


def _load(plan: FloorPlan) -> str:
    return counted(0 if plan.worst is None else plan.worst.size_bytes, "byte")


def _families(plan: FloorPlan) -> Counter[str]:
    return Counter(without_numbers(unit.name) for unit in plan.floor.netlist.units)


def _texts(
    plan: FloorPlan, families: Counter[str], colours: Mapping[str, str]
) -> Iterator[tuple[str, str | None, Paint]]:
    yield "sites, by what most of their units are", None, INK
    names: dict[str, list[str]] = {}
    for unit in plan.floor.netlist.units:
        names.setdefault(without_numbers(unit.name), []).append(unit.name)
    for family, colour in colours.items():
        yield f"{shortened(merged_text(names[family]))}  {families[family]:,}", colour, FAINT
    rest = sum(families.values()) - sum(families[family] for family in colours)
    if rest:
        yield f"others  {rest:,}", _REST, FAINT
    worst = plan.worst
    if worst is None:
        return
    yield "", None, INK
    source, target = worst.source, worst.target
    yield (
        f"the worst link: column {source.column}, row {source.row} to "
        f"column {target.column}, row {target.row}",
        None,
        INK,
    )
    for user, size_bytes in [*worst.users.items()][:_USERS]:
        yield f"{counted(size_bytes, 'byte'):>19}  {shortened(user)}", None, FAINT
    if len(worst.users) > _USERS:
        yield f"and {counted(len(worst.users) - _USERS, 'more output')}", None, FAINT


def _line(text: str, fill: str | None, paint: Paint, left: float, top: float) -> Iterator[str]:
    after = left
    if fill is not None:
        after += 18
        yield f'<rect x="{left:.1f}" y="{top:.1f}" width="11" height="11" rx="2" fill="{fill}"/>'
    yield (
        f'<text x="{after:.1f}" y="{top + 9.5:.1f}" font-size="{_FONT}" xml:space="preserve" '
        f"{paint.fill}>{escape(text)}</text>"
    )


def _links(plan: FloorPlan, step: float) -> Iterator[str]:
    floor, mesh = plan.floor, plan.mesh
    loads = floor.link_bytes(plan.numbers)
    weighed = [load * weight for load, weight in zip(loads, floor.weights, strict=True)]
    most = max(weighed)
    aside = step * 0.07
    for ends, load, weight in zip(mesh.link_ends, loads, weighed, strict=True):
        if ends is None or not weight:
            continue
        source, target = ends
        (x, y), (to_x, to_y) = _centre(source, step), _centre(target, step)
        # The two directions are drawn on either side of the line between the sites.
        shift_x = (source.row - target.row) * aside
        shift_y = (target.column - source.column) * aside
        line = (
            f'<line x1="{x + shift_x:.1f}" y1="{y + shift_y:.1f}" '
            f'x2="{to_x + shift_x:.1f}" y2="{to_y + shift_y:.1f}"'
        )
        # A tenth of the worst load is still visible.
        share = math.sqrt(weight / most)
        is_worst = plan.worst is not None and (plan.worst.source, plan.worst.target) == ends
        wide = step * (0.22 if is_worst else 0.04 + 0.1 * share)
        yield (
            f'{line} {RED.stroke} stroke-width="{wide:.2f}" '
            f'stroke-opacity="{max(_FAINTEST, share):.2f}">'
            f"<title>{counted(load, 'byte')}</title></line>"
        )


def _sites(plan: FloorPlan, step: float, colours: Mapping[str, str]) -> Iterator[str]:
    here: dict[int, list[str]] = {}
    for unit, site in zip(plan.floor.netlist.units, plan.numbers, strict=True):
        here.setdefault(site, []).append(unit.name)
    side = step * _SHARE
    for at, place in enumerate(plan.mesh.sites):
        x, y = _centre(place, step)
        box = (
            f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" '
            f'height="{side:.1f}" rx="{side * 0.15:.1f}"'
        )
        names = here.get(at, [])
        if not names:
            yield f"{box} {BOX['routing'].fill}/>"
            continue
        title = _title(place, names)
        yield f'{box} fill="{_colour(names, colours)}"><title>{escape(title)}</title></rect>'


def _title(site: Site, names: Sequence[str]) -> str:
    return f"column {site.column}, row {site.row}: {', '.join(names)}"


def _colour(names: Sequence[str], colours: Mapping[str, str]) -> str:
    (family, _), *_ = Counter(map(without_numbers, names)).most_common(1)
    return colours.get(family, _REST)


def _centre(site: tuple[int, int], step: float) -> tuple[float, float]:
    return (site[0] + 0.5) * step, (site[1] + 0.5) * step

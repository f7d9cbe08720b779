"""A floor plan, its bounds, its file, and its sheet for terminals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from fabric.analysis.placing.floor import Cost, Floor, site_text
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.graph.hardware.latency import Mesh, Site
from fabric.messages.files import output_file
from fabric.messages.text import JsonObject, counted, families, visible

_USERS: Final = 8


@dataclass(frozen=True)
class LoadedLink:
    """A link between two neighbours, and the nets that use it."""

    source: Site
    target: Site
    size_bytes: int
    users: Mapping[str, int]  # bytes of each output, most first, by ``load_x -> route``


@dataclass(frozen=True, repr=False)
class FloorPlan(Result):
    """A site for each unit, and the cost of this plan.

    Attributes:
        sites: by the name of the operator, in the order of the program's nodes.
        units_per_site: the most units on a site.
        site_bytes: the memory of a site; None if unlimited.
        method: ``annealed`` or ``exact``.
        proven: no plan is cheaper.
        random_cost_bytes: mean cost of random plans that keep the rules; None if none was drawn.
        lower_bound: lower bounds of both parts of the cost of any plan.
        lower_bound_bytes: bound of the whole cost, from ``lower_bound`` or an exact search.
        unknown_channels: channels with data-dependent bytes; unknown sizes count as 1.
        worst: the link with most bytes, weighed; None if all links are empty.
    """

    program: str
    mesh: Mesh
    sites: Mapping[str, Site]
    units_per_site: int
    site_bytes: int | None
    seed: int
    method: Literal["annealed", "exact"]
    proven: bool
    cost: Cost
    random_cost_bytes: int | None
    lower_bound: Cost
    lower_bound_bytes: int
    unknown_channels: int
    worst: LoadedLink | None
    floor: Floor
    numbers: tuple[int, ...]

    def as_json(self) -> JsonObject:
        """Return the plan as plain data."""
        worst = self.worst and {
            "source": list(self.worst.source),
            "target": list(self.worst.target),
            "bytes": self.worst.size_bytes,
            "users": dict(self.worst.users),
        }
        return {
            "name": self.program,
            "columns": self.mesh.columns,
            "rows": self.mesh.rows,
            "units_per_site": self.units_per_site,
            "site_bytes": self.site_bytes,
            "seed": self.seed,
            "method": self.method,
            "proven": self.proven,
            "cost_bytes": self.cost.bytes,
            "byte_hops": self.cost.byte_hops,
            "worst_link_bytes": self.cost.worst_link_bytes,
            "random_cost_bytes": self.random_cost_bytes,
            "lower_bound_bytes": self.lower_bound_bytes,
            "lower_bound_byte_hops": self.lower_bound.byte_hops,
            "lower_bound_worst_link_bytes": self.lower_bound.worst_link_bytes,
            "unknown_channels": self.unknown_channels,
            "worst_link": worst,
            "units": {name: list(site) for name, site in self.sites.items()},
        }

    def write(self, path: Path | str) -> None:
        """Write the file with the site of each unit.

        Raises:
            OSError: the file cannot be written.
        """
        columns, rows = counted(self.mesh.columns, "column"), counted(self.mesh.rows, "row")
        with output_file(Path(path), encoding="utf-8") as file:
            file.write(f"# {columns}, {rows}; cost {counted(self.cost.bytes, 'byte')}\n")
            file.write(f"program = {_quoted(self.program)}\n\n[units]\n")
            for name, site in self.sites.items():
                file.write(f"{_quoted(name)} = [{site.column}, {site.row}]\n")

    def sheet(self) -> Sheet:
        """Yield the cost of the plan, its bounds, and the users of the worst link."""
        mesh = self.mesh
        head = f"  {counted(mesh.columns, 'column')}, {counted(mesh.rows, 'row')}"
        yield line((visible(self.program), "bold"), head)
        for sentence in _sentences(self):
            yield line(sentence)
        rows = [
            ("bytes times hops", self.cost.byte_hops, self.lower_bound.byte_hops),
            ("worst link", self.cost.worst_link_bytes, self.lower_bound.worst_link_bytes),
            ("both", self.cost.bytes, self.lower_bound_bytes),
        ]
        yield Title("Cost", ", in bytes")
        yield Rows(("", "this plan", "no plan is below"), rows)
        if self.worst is not None:
            yield from _worst(self.worst)


def _quoted(text: str) -> str:
    # JSON strings are TOML strings, except for the character DEL.
    return json.dumps(visible(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _sentences(plan: FloorPlan) -> list[str]:
    units = len(plan.numbers)
    sites = len({*plan.numbers})
    sentences = [
        f"{counted(units, 'unit')} on {counted(sites, 'site')}, at most "
        f"{plan.units_per_site:,} on each."
    ]
    if plan.random_cost_bytes and plan.cost.bytes:
        times = plan.random_cost_bytes / plan.cost.bytes
        sentences.append(
            f"Random plans cost {counted(plan.random_cost_bytes, 'byte')} on average, "
            f"{times:.3g} times as much."
        )
    if plan.proven:
        sentences.append("No plan costs less.")
    else:
        bound_bytes = plan.lower_bound_bytes
        above = plan.cost.bytes / bound_bytes - 1 if bound_bytes else 1
        sentences.append(
            f"No plan costs less than {counted(bound_bytes, 'byte')}"
            + (f"; this one costs {100 * above:.3g} % more." if above < 1 else ".")
        )
    if plan.unknown_channels:
        sentences.append(
            f"Data decide the bytes of {counted(plan.unknown_channels, 'channel')}: unknown sizes "
            "count as 1; --set states sizes."
        )
    return sentences


def _worst(worst: LoadedLink) -> Sheet:
    rows = [
        (title, len(users), sum(worst.users[user] for user in users))
        for title, users in families(worst.users, str)
    ]
    rows.sort(key=lambda row: -row[2])
    ends = f"from {site_text(worst.source)} to {site_text(worst.target)}"
    yield Title("The worst link", f", {ends}, has {counted(worst.size_bytes, 'byte')}")
    yield Rows(("outputs", "number", "bytes"), rows, _USERS)

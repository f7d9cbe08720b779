"""A floor plan, what is known of it, and its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabric.network import Mesh, Site
from fabric.placing.floor import Cost, Floor
from fabric.telling.plain import JsonObject
from fabric.telling.sheet import ShownAsTables
from fabric.telling.whole_file import write_whole
from fabric.telling.wording import counted, visible

__all__ = ["FloorPlan", "LoadedLink"]


@dataclass(frozen=True)
class LoadedLink:
    """A link between two neighbours, and what uses it.

    Attributes:
        source, target: its sites.
        size_bytes: that it carries in a run.
        users: the bytes of each output that goes over it, most first, by unit and then its readers:
            ``load_x -> route``.
    """

    source: Site
    target: Site
    size_bytes: int
    users: Mapping[str, int]


@dataclass(frozen=True, repr=False)
class FloorPlan(ShownAsTables):
    """A site for each unit, and the cost of this plan.

    Attributes:
        program: its name.
        mesh: of sites.
        sites: by the name of the operator, in the order of the program's nodes.
        units_per_site: at most.
        site_bytes: of memory at a site; None for any number.
        seed: that it was drawn with.
        method: ``annealed`` or ``exact``.
        proven: whether no plan is cheaper.
        cost: of this plan.
        random_cost_bytes: the mean of random plans that keep the rules; None where none was found.
        lower_bound: that no plan is below.
        lower_bound_bytes: of the whole cost; that of ``lower_bound``, or a better one of a search.
        unknown_channels: channels whose bytes only a run can tell: their sizes were taken as 1.
        worst: the link with most bytes, weighed; None where nothing goes over links.
        floor: what the picture is made of.
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
    """Of each unit of the floor's netlist, the number of its site."""

    def as_json(self) -> JsonObject:
        """Return it as plain data."""
        worst = self.worst
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
            "worst_link": None
            if worst is None
            else {
                "source": list(worst.source),
                "target": list(worst.target),
                "bytes": worst.size_bytes,
                "users": dict(worst.users),
            },
            "units": {name: list(site) for name, site in self.sites.items()},
        }

    def write(self, path: Path) -> None:
        """Write the file that says where each unit is.

        Raises:
            OSError: it cannot be written.
        """
        columns, rows = counted(self.mesh.columns, "column"), counted(self.mesh.rows, "row")
        lines = [
            f"# {columns}, {rows}; cost {counted(self.cost.bytes, 'byte')}",
            f"program = {_quoted(self.program)}",
            "",
            "[units]",
            *(
                f"{_quoted(name)} = [{site.column}, {site.row}]"
                for name, site in self.sites.items()
            ),
            "",
        ]
        write_whole(path, "\n".join(lines))


def _quoted(text: str) -> str:
    # A string of JSON is one of TOML, but for one character.
    return json.dumps(visible(text), ensure_ascii=False).replace("\x7f", "\\u007f")

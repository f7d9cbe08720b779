"""Sites of units on a mesh, stated in a TOML file or in the program, or chosen by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.graph.hardware.latency import Mesh, Site
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import line_in, read_toml
from fabric.messages.text import found_text

if TYPE_CHECKING:
    from fabric.graph.wiring.operator import Node
    from fabric.graph.wiring.stream import Producer


_EXPECTED: Final = "a placement: the program's name, and [units] with a site for each unit"


class Placement(NamedTuple):
    """Sites of units, from the program, or from a TOML file if ``line`` is None."""

    file: str
    program: str
    units: Mapping[str, Site]
    line: int | None = None

    def refuse(self, what: str, *names: str) -> ConfigurationError:
        """Return an error about a key; ``names`` begin with the outermost table."""
        line = line_in(self.file, *names) if self.line is None else self.line
        return ConfigurationError(what, file=self.file, line=line)


class Floor(NamedTuple):
    """The sites of units.

    Attributes:
        stated: the placement that states the sites; None if units are placed row by row.
    """

    mesh: Mesh
    sites: Mapping[str, Site]
    stated: Placement | None

    def site_of(self, node: Node) -> Site:
        """Return the site of a unit; an inferred Broadcast has the site of its producer."""
        at: Producer = node
        while at.name not in self.sites:
            producer = at.inputs[0].resolve().node
            assert producer is not None
            at = producer
        return self.sites[at.name]

    def units_at(self, nodes: Sequence[Node]) -> Iterator[tuple[Site, list[Node]]]:
        """Yield the sites, row by row, each with its units among ``nodes``."""
        units: dict[Site, list[Node]] = {site: [] for site in self.mesh.sites}
        for node in nodes:
            units[self.site_of(node)].append(node)
        yield from units.items()


def read_placement(path: Path | str) -> Placement:
    file = Path(path)
    document = read_toml(file, _EXPECTED)
    placed = Placement(str(file), "", {})
    for key in document:
        if key not in ("program", "units"):
            raise placed.refuse(f"{key} is given: expected {_EXPECTED}", key)
    program, units = document.get("program"), document.get("units")
    if not isinstance(program, str):
        text = "missing" if program is None else found_text(program)
        raise placed.refuse(f"program is {text}: expected the name of a program", "program")
    if not isinstance(units, dict):
        text = "missing" if units is None else found_text(units)
        raise placed.refuse(f"units is {text}: expected a table, [units], of sites", "units")
    sites = {}
    for name, site in units.items():
        if not isinstance(site, list) or [*map(type, site)] != [int, int]:
            what = f"{name} is {found_text(site)}: expected [column, row]"
            raise placed.refuse(what, "units", name)
        sites[name] = Site(*site)
    return placed._replace(program=program, units=sites)
